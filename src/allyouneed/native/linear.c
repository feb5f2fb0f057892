/* Arrange weights in the form that the kernels read: in panels of 64 outputs, as float32 or int8 (kernels.h). */

#include <math.h>

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

/* The first four levels of an output; the next four follow 4 · STRIP later. */
static int8_t *levels_of(const Linear *map, int output) {
    return map->levels + (size_t)(output / STRIP) * map->quads * 4 * STRIP + output % STRIP * 4;
}

/* Round one row of weights to levels. */
static void pack_levels(Linear *map, const float *row, float scale, int output) {
    int8_t *levels = levels_of(map, output);
    int32_t sum = 0;
    for (int i = 0; i < map->in; i++) {
        const int32_t level = (int32_t)((row[i] / scale + 12582912.0f) - 12582912.0f); /* ties to even */
        levels[(size_t)(i / 4) * 4 * STRIP + i % 4] = (int8_t)level;
        sum += level;
    }
    map->scale[output] = scale;
    map->sum[output] = sum;
}

/* Join several maps of the same vector into one, with neighbouring outputs. A missing bias is 0, and missing scales
   are computed. */
void linear_new(Pool *pool, Linear *map, const float *const *weights, const float *const *scales,
                const float *const *biases, const int *outputs, int count, int in, int int8) {
    size_t padded;
    int output = 0;
    map->in = in;
    map->out = 0;
    for (int m = 0; m < count; m++) map->out += outputs[m];
    map->quads = (in + 3) / 4;
    map->panels = (map->out + PANEL - 1) / PANEL;
    padded = (size_t)map->panels * PANEL;
    map->bias = pool_take(pool, sizeof *map->bias * padded);
    if (int8) {
        map->levels = pool_take(pool, 4 * padded * map->quads);
        map->scale = pool_take(pool, sizeof *map->scale * padded);
        map->sum = pool_take(pool, sizeof *map->sum * padded);
    } else {
        map->weights = pool_take(pool, sizeof *map->weights * padded * in);
    }
    if (pool->failed) return;

    for (int m = 0; m < count; m++) {
        for (int o = 0; o < outputs[m]; o++, output++) {
            const float *row = weights[m] + (size_t)o * in;
            if (biases[m]) map->bias[output] = biases[m][o];
            if (int8) {
                pack_levels(map, row, scales[m] ? scales[m][o] : find_scale(row, in), output);
                continue;
            }
            for (int i = 0; i < in; i++)
                map->weights[((size_t)(output / PANEL) * in + i) * PANEL + output % PANEL] = row[i];
        }
    }
}

/* The weights of one output in int8, as numbers. */
void linear_row(const Linear *map, int output, float *x) {
    const int8_t *levels = levels_of(map, output);
    for (int i = 0; i < map->in; i++) x[i] = map->scale[output] * levels[(size_t)(i / 4) * 4 * STRIP + i % 4];
}
