/* Arrange weights in the form that the kernels read: in panels of 64 outputs, as float32 or int8 (kernels.h). */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { LANES = 16 }; /* of partial results, which a compiler keeps in vectors */

int all_finite(const float *x, size_t size) {
    float zeros[LANES] = {0}; /* x − x is 0, except for infinity and NaN */
    int finite = 1;
    size_t i = 0;
    for (; i + LANES <= size; i += LANES)
        for (int lane = 0; lane < LANES; lane++) zeros[lane] += x[i + lane] - x[i + lane];
    for (; i < size; i++) zeros[0] += x[i] - x[i];
    for (int lane = 0; lane < LANES; lane++) finite &= zeros[lane] == 0;
    return finite;
}

static float larger(float a, float b) { return a > b ? a : b; }

/* Return the scale with which levels are −127 to 127. AVX2 adds two products of a level and up to 255 in 16 bits, so
   two neighbouring levels of the same sign must not exceed 128 together. */
static float find_scale(const float *row, int in) {
    float largest[LANES] = {1e-12f};
    int i = 0;
    for (; i + LANES <= in; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) largest[lane] = larger(largest[lane], fabsf(row[i + lane]));
        for (int lane = 0; lane < LANES; lane += 2)
            largest[lane] = larger(largest[lane], fabsf(row[i + lane] + row[i + lane + 1]));
    }
    for (; i < in; i++) largest[0] = larger(largest[0], larger(fabsf(row[i]), i % 2 ? fabsf(row[i - 1] + row[i]) : 0));
    for (int lane = 1; lane < LANES; lane++) largest[0] = larger(largest[0], largest[lane]);
    return largest[0] / 127;
}

/* Round one row of weights to levels. `levels` has room for the row, and has 0 after it. */
static void pack_levels(Linear *map, const float *row, float scale, int output, int8_t *levels) {
    int8_t *strip = map->levels + (size_t)(output / STRIP) * map->quads * 4 * STRIP + output % STRIP * 4;
    int32_t sum = 0;
    for (int i = 0; i < map->in; i++) {
        const int32_t level = (int32_t)((row[i] / scale + 12582912.0f) - 12582912.0f); /* ties to even */
        levels[i] = (int8_t)level;
        sum += level;
    }
    for (int quad = 0; quad < map->quads; quad++) memcpy(strip + (size_t)quad * 4 * STRIP, levels + 4 * quad, 4);
    map->scale[output] = scale;
    map->sum[output] = sum;
}

/* Join several maps of the same vector into one, with neighbouring outputs. A missing bias is 0, and missing scales
   are computed. */
int linear_new(Linear *map, const float *const *weights, const float *const *scales, const float *const *biases,
               const int *outputs, int count, int in, int int8) {
    size_t padded;
    int output = 0;
    int8_t *row_levels = NULL;
    map->in = in;
    map->out = 0;
    for (int m = 0; m < count; m++) map->out += outputs[m];
    map->quads = (in + 3) / 4;
    map->panels = (map->out + PANEL - 1) / PANEL;
    padded = (size_t)map->panels * PANEL;
    map->bias = calloc(padded, sizeof *map->bias);
    if (int8) {
        map->levels = calloc(padded * map->quads, 4);
        map->scale = calloc(padded, sizeof *map->scale);
        map->sum = calloc(padded, sizeof *map->sum);
    } else {
        map->weights = calloc(padded * in, sizeof *map->weights);
    }
    if (int8) row_levels = calloc(map->quads, 4);
    if (!map->bias || (int8 ? !map->levels || !map->scale || !map->sum || !row_levels : !map->weights)) {
        free(row_levels);
        return NO_MEMORY;
    }

    for (int m = 0; m < count; m++) {
        for (int o = 0; o < outputs[m]; o++, output++) {
            const float *row = weights[m] + (size_t)o * in;
            if (biases[m]) map->bias[output] = biases[m][o];
            if (int8) {
                pack_levels(map, row, scales[m] ? scales[m][o] : find_scale(row, in), output, row_levels);
                continue;
            }
            for (int i = 0; i < in; i++)
                map->weights[((size_t)(output / PANEL) * in + i) * PANEL + output % PANEL] = row[i];
        }
    }
    free(row_levels);
    return OK;
}

/* The weights of one output in int8, as numbers. */
void linear_row(const Linear *map, int output, float *x) {
    const int8_t *strip = map->levels + (size_t)(output / STRIP) * map->quads * 4 * STRIP + output % STRIP * 4;
    for (int i = 0; i < map->in; i++) x[i] = map->scale[output] * strip[(size_t)(i / 4) * 4 * STRIP + i % 4];
}

void linear_free(Linear *map) {
    free(map->bias);
    free(map->weights);
    free(map->levels);
    free(map->scale);
    free(map->sum);
}
