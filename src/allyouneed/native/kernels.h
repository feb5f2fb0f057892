/* The functions that every instruction set must provide, and the layout of weights for them.

   Every set keeps two promises, so that a text has the same translation on every processor, by itself and in any batch:

   - Floats are always added in the same order: in 16 lanes, whatever the width of a register (one of 512 bits, two of
     256, four of 128), and then the lanes as a tree. No product is fused with a sum (-ffp-contract=off).
   - Products of int8 are summed in int32, which is exact in any order.

   Each row of a batch is computed by itself; the rows only share the reading of weights. */

#ifndef ALLYOUNEED_KERNELS_H
#define ALLYOUNEED_KERNELS_H

#include <stdint.h>

enum { PANEL = 64, STRIP = 16 };

/* A linear map, y = Wx + b. Outputs are stored in panels of 64, so that loading an input's weights serves 64
   outputs:
     float32: weights[panel][input][64]
     int8:    levels[output / 16][input / 4][16][4], because instructions multiply and add four bytes at once. A panel
              has four such strips. Each strip is read from end to end, even if sums of 64 outputs exceed the registers.
   Outputs are padded to whole panels with zeros, and inputs of int8 to a multiple of 4. */
typedef struct {
    int in, out;     /* as in the model */
    int quads;       /* int8: inputs / 4, rounded up */
    int panels;      /* outputs / 64, rounded up */
    float *bias;     /* panels · 64 */
    float *weights;  /* float32; NULL in int8 */
    int8_t *levels;  /* int8; NULL in float32 */
    float *scale;    /* int8, of each output: weight = scale · level, where two neighbours add up to at most 128 */
    int32_t *sum;    /* int8, of each output: the sum of its levels */
} Linear;

/* The rounding of a row of inputs to bytes: x = scale · (level − zero). */
typedef struct {
    float scale;
    int32_t zero;
} Rounding;

typedef enum { RELU, GELU, SILU } Activation;

typedef struct {
    const char *name;

    /* Round a row to 255 levels between min(x, 0) and max(x, 0). Pads the row to a multiple of 4. */
    void (*quantize)(const float *x, int size, int8_t *levels, Rounding *rounding);

    /* Apply a map to rows. Row r begins at x + r · x_stride, and its `panels` · 64 results at y + r · y_stride. */
    void (*linear_float)(const Linear *map, const float *x, int x_stride, int rows, float *y, int y_stride);
    void (*linear_int8)(const Linear *map, const int8_t *x, const Rounding *rounding, int rows, float *y, int y_stride);

    /* Add y to x, in place. */
    void (*add)(float *x, const float *y, int size);

    /* (x − mean) / √(variance + 1e-5) · gain + bias, §3.1. y may be x. */
    void (*layer_norm)(const float *x, const float *gain, const float *bias, int size, float *y);

    /* x / √(mean of x² + 1e-5) · gain: query-key norm of one head. */
    void (*rms_norm)(float *x, const float *gain, int size);

    /* Apply an activation in place. It may also change what follows the row, up to a whole panel. */
    void (*activate)(float *x, int size, Activation activation);

    /* softmax(q · K / √d_k) V of one head, equation 1, for keys stored in columns of 16 positions:
       keys[length / 16, rounded up][d_k][16], values at values + position · v_stride. `scores` has room
       for `length` + 16, rounded up to whole columns. */
    void (*attend_memory)(const float *query, const float *keys, const float *values, int v_stride, int length, int d_k,
                          int d_v, float *scores, float *out);

    /* Attend to rows of a cache: position t has its key at rows[t] + k_offset and its value at rows[t] + v_offset. */
    void (*attend_rows)(const float *query, const float *const *rows, int k_offset, int v_offset, int length, int d_k,
                        int d_v, float *scores, float *out);

    /* x − log Σ exp x, in place. */
    void (*log_softmax)(float *x, int size);

    /* The index of the first number of x[from … size) that is greater than `bound`; `size` if there is none. */
    int (*next_above)(const float *x, int from, int size, float bound);
} Kernels;

extern const Kernels kernels_plain, kernels_avx2, kernels_avx_vnni, kernels_avx512_vnni, kernels_neon, kernels_neon_dot,
    kernels_wasm;

#endif
