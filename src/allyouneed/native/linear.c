/* Weights as the kernels read them: in panels of 64 outputs, as float32 or as int8 (kernels.h). */

#include <stdlib.h>
#include <string.h>

#include "model.h"

int all_finite(const float *x, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (!(x[i] - x[i] == 0)) return 0; /* infinity − infinity is not a number either */
    return 1;
}

/* One row of weights as levels of −127 to 127. */
static void pack_levels(Linear *map, const float *row, int output) {
    int8_t *panel = map->levels + (size_t)(output / PANEL) * map->quads * 4 * PANEL + output % PANEL * 4;
    float largest = 1e-12f;
    int32_t sum = 0;
    for (int i = 0; i < map->in; i++) {
        const float size = row[i] < 0 ? -row[i] : row[i];
        largest = size > largest ? size : largest;
    }
    map->scale[output] = largest / LEVELS;
    for (int i = 0; i < map->in; i++) {
        const float level = (row[i] / map->scale[output] + 12582912.0f) - 12582912.0f; /* ties to even */
        panel[(size_t)(i / 4) * 4 * PANEL + i % 4] = (int8_t)level;
        sum += (int32_t)level;
    }
    map->offset[output] = 128 * sum;
}

/* Several maps of the same vector as one, their outputs side by side; a missing bias is 0. */
int linear_new(Linear *map, const float *const *weights, const float *const *biases, const int *outputs, int count, int in,
               int int8) {
    size_t padded;
    int output = 0;
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
        map->offset = calloc(padded, sizeof *map->offset);
    } else {
        map->weights = calloc(padded * in, sizeof *map->weights);
    }
    if (!map->bias || (int8 ? !map->levels || !map->scale || !map->offset : !map->weights)) return NO_MEMORY;

    for (int m = 0; m < count; m++) {
        for (int o = 0; o < outputs[m]; o++, output++) {
            const float *row = weights[m] + (size_t)o * in;
            if (biases[m]) map->bias[output] = biases[m][o];
            if (int8) {
                pack_levels(map, row, output);
                continue;
            }
            for (int i = 0; i < in; i++)
                map->weights[((size_t)(output / PANEL) * in + i) * PANEL + output % PANEL] = row[i];
        }
    }
    return OK;
}

void linear_free(Linear *map) {
    free(map->bias);
    free(map->weights);
    free(map->levels);
    free(map->scale);
    free(map->offset);
}
