/* The kernels, for registers of LANES floats. A file of an instruction set defines, then includes this:

     LANES       floats of a register: 4, 8 or 16
     REGISTERS   how many accumulators fit beside what else a product needs
     NAME        the `Kernels` to define
     dot         (sums of int32, 4 · LANES bytes of weights, four bytes of an input in every lane) → sums + their products
     LEAST       the least level of an input: 0 if `dot` takes unsigned inputs, −128 if signed ones

   Everything else is plain C on vectors, which the compiler turns into that set's instructions. */

#include <stddef.h>
#include <string.h>

#include "kernels.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define PARTS (16 / LANES)            /* registers that hold the 16 lanes of a sum */
#define PANEL_PARTS (PANEL / LANES)   /* registers that hold a panel */

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef float LooseFloats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t LooseInts __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef struct { Floats part[PARTS]; } Sixteen;

INLINE Floats load(const float *x) { return *(const LooseFloats *)x; }
INLINE void store(float *x, Floats value) { *(LooseFloats *)x = value; }
INLINE Floats spread(float x) { return x - (Floats){0}; }
INLINE Floats choose(Ints mask, Floats yes, Floats no) { return (Floats)((mask & (Ints)yes) | (~mask & (Ints)no)); }
INLINE Floats larger(Floats a, Floats b) { return choose(a > b, a, b); }
INLINE Floats smaller(Floats a, Floats b) { return choose(a < b, a, b); }

INLINE float add_lanes(Sixteen x) {
    float lane[16];
    for (int p = 0; p < PARTS; p++) store(lane + p * LANES, x.part[p]);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

INLINE float largest_lane(Floats x) {
    float lane[LANES], largest;
    store(lane, x);
    largest = lane[0];
    for (int i = 1; i < LANES; i++) largest = lane[i] > largest ? lane[i] : largest;
    return largest;
}

/* Load the next 16 numbers of a row, or the `count` that are left, followed by `fill`. */
INLINE Sixteen load_sixteen(const float *x, int count, float fill) {
    float lane[16];
    Sixteen result;
    if (count < 16) {
        for (int i = 0; i < 16; i++) lane[i] = i < count ? x[i] : fill;
        x = lane;
    }
    for (int p = 0; p < PARTS; p++) result.part[p] = load(x + p * LANES);
    return result;
}

/* Whole numbers nearest to x, ties to even, for |x| < 2^22: adding 1.5 · 2^23 leaves no room for a fraction. */
INLINE Floats nearest(Floats x) { return (x + 12582912.0f) - 12582912.0f; }

/* The nearest integer to x, which is in the lowest bits of that sum. */
INLINE int32_t nearest_integer(float x) {
    const float sum = x + 12582912.0f;
    int32_t bits;
    memcpy(&bits, &sum, 4);
    return bits - 0x4b400000;
}

/* exp x = 2^n · exp r, where n is whole and |r| ≤ ln 2 / 2; exp r by its Taylor series, whose error is below 1e-8.
   Below −87 it is exp −87, about 1e-38. */
INLINE Floats exponential(Floats x) {
    Floats n, r, sum;
    x = choose(x < -87.0f, spread(-87.0f), x);
    x = choose(x > 88.0f, spread(88.0f), x);
    n = nearest(x * 1.44269504f);
    r = (x - n * 0.693359375f) + n * 2.12194440e-4f; /* ln 2 in two parts, the first with few digits: n times it is exact */
    sum = spread(1.0f / 5040);
    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    return (Floats)((Ints)sum + (__builtin_convertvector(n, Ints) << 23));
}

/* ln x of a positive number: of 2^n · m with 1/√2 ≤ m < √2 it is n · ln 2 + 2 · artanh((m − 1) / (m + 1)). */
INLINE float logarithm(float x) {
    int32_t bits, n;
    float mantissa;
    double z, square, sum = 0;
    memcpy(&bits, &x, 4);
    n = ((bits - 0x3f3504f3) >> 23);
    bits -= n * (1 << 23);
    memcpy(&mantissa, &bits, 4);
    z = ((double)mantissa - 1) / ((double)mantissa + 1);
    square = z * z;
    for (int k = 15; k > 0; k -= 2) sum = sum * square + 1.0 / k;
    return (float)(n * 0.69314718055994531 + 2 * z * sum);
}

static float square_root(float x) { return __builtin_sqrtf(x); }

/* ---- Linear maps ---- */

/* `rows` rows times `width` registers of a panel, from register `first` on. */
INLINE void int8_tile(const Linear *map, int panel, int first, int width, const int8_t *x, int rows,
                      const Rounding *rounding, float *y, int y_stride) {
    const int quads = map->quads;
    const size_t outputs = (size_t)panel * PANEL + first * LANES;
    Ints sums[6][16];

    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < width; c++) sums[r][c] = (Ints){0};

    for (int quad = 0; quad < quads; quad++) {
        Ints input[6];
        UNROLL for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + ((size_t)r * quads + quad) * 4, 4);
            input[r] = four - (Ints){0};
        }
        UNROLL for (int c = 0; c < width; c++) {
            const size_t output = outputs + c * LANES;
            const int8_t *levels = map->levels + (output / STRIP * quads + quad) * 4 * STRIP + output % STRIP * 4;
            const Ints weights = *(const LooseInts *)levels;
            UNROLL for (int r = 0; r < rows; r++) sums[r][c] = dot(sums[r][c], weights, input[r]);
        }
    }

    UNROLL for (int c = 0; c < width; c++) {
        const Floats scale = load(map->scale + outputs + c * LANES);
        const Floats bias = load(map->bias + outputs + c * LANES);
        const Ints sum = *(const LooseInts *)(map->sum + outputs + c * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            const Floats product = __builtin_convertvector(sums[r][c] - sum * rounding[r].zero, Floats) * scale;
            store(y + (size_t)r * y_stride + outputs + c * LANES, product * spread(rounding[r].scale) + bias);
        }
    }
}

INLINE void float_tile(const Linear *map, int panel, int first, int width, const float *x, int x_stride, int rows, float *y,
                       int y_stride) {
    const float *weights = map->weights + (size_t)panel * map->in * PANEL + first * LANES;
    const size_t outputs = (size_t)panel * PANEL + first * LANES;
    Floats sums[6][16];

    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < width; c++) sums[r][c] = (Floats){0};

    for (int i = 0; i < map->in; i++) {
        UNROLL for (int c = 0; c < width; c++) {
            const Floats column = load(weights + (size_t)i * PANEL + c * LANES);
            UNROLL for (int r = 0; r < rows; r++) sums[r][c] = sums[r][c] + column * spread(x[(size_t)r * x_stride + i]);
        }
    }

    UNROLL for (int c = 0; c < width; c++) {
        const Floats bias = load(map->bias + outputs + c * LANES);
        UNROLL for (int r = 0; r < rows; r++)
            store(y + (size_t)r * y_stride + outputs + c * LANES, sums[r][c] + bias);
    }
}

/* The widest tile of this many rows whose sums fit into the registers. */
#define WIDTH(rows) (REGISTERS / (rows) >= PANEL_PARTS       ? PANEL_PARTS     \
                     : REGISTERS / (rows) >= PANEL_PARTS / 2 ? PANEL_PARTS / 2 \
                     : REGISTERS / (rows) >= PANEL_PARTS / 4 ? PANEL_PARTS / 4 \
                                                             : PANEL_PARTS / 8)

/* Panels are the outer loop, so that a panel stays in the nearest cache while all rows use it. */
#define OVER_TILES(TILE)                                                                                  \
    for (int panel = 0; panel < map->panels; panel++) {                                                   \
        int row = 0;                                                                                      \
        while (row < rows) {                                                                              \
            const int left = rows - row;                                                                  \
            if (left >= 6 && REGISTERS >= 24) { TILE(6); }                                                \
            else if (left >= 4) { TILE(4); }                                                              \
            else if (left == 3 && REGISTERS >= 24) { TILE(3); }                                           \
            else if (left >= 2) { TILE(2); }                                                              \
            else { TILE(1); }                                                                             \
        }                                                                                                 \
    }

static void linear_int8(const Linear *map, const int8_t *x, const Rounding *rounding, int rows, float *y, int y_stride) {
#define INT8_TILE(count)                                                                                        \
    for (int first = 0; first < PANEL_PARTS; first += WIDTH(count))                                             \
        int8_tile(map, panel, first, WIDTH(count), x + (size_t)row * map->quads * 4, count, rounding + row,     \
                  y + (size_t)row * y_stride, y_stride);                                                        \
    row += count
    OVER_TILES(INT8_TILE)
}

static void linear_float(const Linear *map, const float *x, int x_stride, int rows, float *y, int y_stride) {
#define FLOAT_TILE(count)                                                                                       \
    for (int first = 0; first < PANEL_PARTS; first += WIDTH(count))                                             \
        float_tile(map, panel, first, WIDTH(count), x + (size_t)row * x_stride, x_stride, count,                \
                   y + (size_t)row * y_stride, y_stride);                                                       \
    row += count
    OVER_TILES(FLOAT_TILE)
}

static void quantize(const float *x, int size, int8_t *levels, Rounding *rounding) {
    Floats lows = {0}, highs = {0};
    float low, high, factor;
    int zero, i = 0;
    for (; i + LANES <= size; i += LANES) {
        lows = smaller(lows, load(x + i));
        highs = larger(highs, load(x + i));
    }
    low = -largest_lane(-lows);
    high = largest_lane(highs);
    for (; i < size; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    factor = high - low > 1e-30f ? 254 / (high - low) : 0; /* 0: a row of zeros, or as good as zeros */
    zero = nearest_integer(-low * factor) & 255;           /* a level also of what is no number */
    for (i = 0; i < size; i++) levels[i] = (int8_t)(nearest_integer(x[i] * factor + (float)zero) + LEAST);
    for (; i % 4; i++) levels[i] = 0;
    *rounding = (Rounding){(high - low) / 254, zero + LEAST};
}

/* ---- Rows ---- */

static void add(float *x, const float *y, int size) {
    for (int i = 0; i < size; i++) x[i] += y[i];
}

INLINE float sum_of(const float *x, int size, float mean, int squared) {
    Sixteen sum = {0};
    for (int i = 0; i < size; i += 16) {
        const Sixteen next = load_sixteen(x + i, size - i, mean);
        for (int p = 0; p < PARTS; p++) {
            const Floats part = next.part[p] - spread(mean);
            sum.part[p] = sum.part[p] + (squared ? part * part : part);
        }
    }
    return add_lanes(sum);
}

static void layer_norm(const float *x, const float *gain, const float *bias, int size, float *y) {
    const float mean = sum_of(x, size, 0, 0) / size;
    const float variance = sum_of(x, size, mean, 1) / size;
    const float factor = 1 / square_root(variance + 1e-5f);
    for (int i = 0; i < size; i++) y[i] = (x[i] - mean) * factor * gain[i] + bias[i];
}

static void rms_norm(float *x, const float *gain, int size) {
    const float factor = 1 / square_root(sum_of(x, size, 0, 1) / size + 1e-5f);
    for (int i = 0; i < size; i++) x[i] = x[i] * factor * gain[i];
}

/* erf x, by Taylor's series near 0 and Laplace's continued fraction of erfc elsewhere; only models with GELU need it. */
static double error_function(double x) {
    const double size = x < 0 ? -x : x, square = x * x;
    double sum = 0, power = size;
    if (size < 2.5) {
        for (int n = 0; n < 40; n++) {
            sum += power / (2 * n + 1);
            power *= -square / (n + 1);
        }
        sum *= 1.1283791670955126; /* 2 / √π */
    } else if (size > 6) {
        sum = 1;
    } else {
        Floats part = exponential(spread((float)-square));
        double fraction = size;
        for (int n = 40; n > 0; n--) fraction = size + n / 2.0 / fraction;
        sum = 1 - (double)part[0] * 0.56418958354775629 / fraction; /* 1 / √π */
    }
    return x < 0 ? -sum : sum;
}

static void activate(float *x, int size, Activation activation) {
    if (activation == RELU)
        for (int i = 0; i < size; i++) x[i] = x[i] > 0 ? x[i] : 0;
    if (activation == GELU)
        for (int i = 0; i < size; i++) x[i] = (float)(0.5 * x[i] * (1 + error_function(x[i] * 0.70710678118654752)));
    if (activation == SILU) /* the row is padded to whole panels */
        for (int i = 0; i < size; i += LANES) store(x + i, load(x + i) / (1.0f + exponential(-load(x + i))));
}

/* ---- Attention ---- */

/* Compute the softmax of scores[0 … length). The 16 numbers after these then have no meaning. */
INLINE void softmax(float *scores, int length) {
    Floats most;
    Sixteen sum = {0};
    float largest, factor;
    for (int i = length; i < length + 15; i++) scores[i] = -1e30f; /* exp of it is as good as 0, but is not added */
    most = load(scores);
    for (int i = 0; i < length; i += LANES) most = larger(most, load(scores + i));
    largest = largest_lane(most);
    for (int i = 0; i < length; i += 16)
        for (int p = 0; p < PARTS; p++) {
            Floats weight;
            if (i + p * LANES >= length) break;
            weight = exponential(load(scores + i + p * LANES) - spread(largest));
            store(scores + i + p * LANES, weight);
        }
    for (int i = length; i < length + 15; i++) scores[i] = 0;
    for (int i = 0; i < length; i += 16)
        for (int p = 0; p < PARTS && i + p * LANES < length; p++)
            sum.part[p] = sum.part[p] + load(scores + i + p * LANES);
    factor = 1 / add_lanes(sum);
    for (int i = 0; i < length; i++) scores[i] *= factor;
}

/* Sum values multiplied by their weights, for 16 · `columns` numbers of each value. Value t begins at rows[t] +
   offset or, without `rows`, at values + t · stride. */
INLINE void weigh_columns(const int columns, const float *weights, int length, const float *values, int stride,
                          const float *const *rows, int offset, float *out) {
    Sixteen sums[4];
    UNROLL for (int c = 0; c < columns; c++)
        UNROLL for (int p = 0; p < PARTS; p++) sums[c].part[p] = (Floats){0};
    for (int t = 0; t < length; t++) {
        const float *value = rows ? rows[t] + offset : values + (size_t)t * stride;
        UNROLL for (int c = 0; c < columns; c++)
            UNROLL for (int p = 0; p < PARTS; p++)
                sums[c].part[p] = sums[c].part[p] + load(value + c * 16 + p * LANES) * spread(weights[t]);
    }
    UNROLL for (int c = 0; c < columns; c++)
        UNROLL for (int p = 0; p < PARTS; p++) store(out + c * 16 + p * LANES, sums[c].part[p]);
}

INLINE void weigh(const float *weights, int length, const float *values, int stride, const float *const *rows, int offset,
                  int d_v, float *out) {
    int i = 0;
    for (; LANES > 4 && i + 64 <= d_v; i += 64)
        weigh_columns(4, weights, length, rows ? NULL : values + i, stride, rows, offset + i, out + i);
    for (; i + 16 <= d_v; i += 16)
        weigh_columns(1, weights, length, rows ? NULL : values + i, stride, rows, offset + i, out + i);
    for (; i < d_v; i++) {
        float sum = 0;
        for (int t = 0; t < length; t++)
            sum += (rows ? rows[t][offset + i] : values[(size_t)t * stride + i]) * weights[t];
        out[i] = sum;
    }
}

/* Scores of 16 · `blocks` positions. */
INLINE void score_columns(const int blocks, const float *query, const float *keys, int d_k, float factor, float *scores) {
    Sixteen sums[4];
    UNROLL for (int b = 0; b < blocks; b++)
        UNROLL for (int p = 0; p < PARTS; p++) sums[b].part[p] = (Floats){0};
    for (int k = 0; k < d_k; k++)
        UNROLL for (int b = 0; b < blocks; b++)
            UNROLL for (int p = 0; p < PARTS; p++)
                sums[b].part[p] =
                    sums[b].part[p] + load(keys + ((size_t)b * d_k + k) * 16 + p * LANES) * spread(query[k]);
    UNROLL for (int b = 0; b < blocks; b++)
        UNROLL for (int p = 0; p < PARTS; p++) store(scores + b * 16 + p * LANES, sums[b].part[p] * spread(factor));
}

static void attend_memory(const float *query, const float *keys, const float *values, int v_stride, int length, int d_k,
                          int d_v, float *scores, float *out) {
    const float factor = 1 / square_root((float)d_k);
    int t = 0;
    for (; LANES > 4 && t + 48 < length; t += 64)
        score_columns(4, query, keys + (size_t)t * d_k, d_k, factor, scores + t);
    for (; t + 16 < length; t += 32) score_columns(2, query, keys + (size_t)t * d_k, d_k, factor, scores + t);
    for (; t < length; t += 16) score_columns(1, query, keys + (size_t)t * d_k, d_k, factor, scores + t);
    softmax(scores, length);
    weigh(scores, length, values, v_stride, NULL, 0, d_v, out);
}

static void attend_rows(const float *query, const float *const *rows, int k_offset, int v_offset, int length, int d_k,
                        int d_v, float *scores, float *out) {
    const float factor = 1 / square_root((float)d_k);
    for (int t = 0; t < length; t++) {
        const float *key = rows[t] + k_offset;
        Sixteen sum = {0};
        int i = 0;
        for (; i + 16 <= d_k; i += 16) /* of each key so far: no branch */
            for (int p = 0; p < PARTS; p++)
                sum.part[p] = sum.part[p] + load(query + i + p * LANES) * load(key + i + p * LANES);
        if (i < d_k) {
            const Sixteen left = load_sixteen(query + i, d_k - i, 0), right = load_sixteen(key + i, d_k - i, 0);
            for (int p = 0; p < PARTS; p++) sum.part[p] = sum.part[p] + left.part[p] * right.part[p];
        }
        scores[t] = add_lanes(sum) * factor;
    }
    softmax(scores, length);
    weigh(scores, length, NULL, 0, rows, v_offset, d_v, out);
}

/* ---- The vocabulary ---- */

static void log_softmax(float *x, int size) {
    Floats most = spread(x[0]);
    float largest, shift;
    Sixteen sum = {0};
    int i = 0;
    for (; i + LANES <= size; i += LANES) most = larger(most, load(x + i));
    largest = largest_lane(most);
    for (; i < size; i++) largest = x[i] > largest ? x[i] : largest;
    for (i = 0; i < size; i += 16) {
        const Sixteen next = load_sixteen(x + i, size - i, -1e30f);
        for (int p = 0; p < PARTS; p++) sum.part[p] = sum.part[p] + exponential(next.part[p] - spread(largest));
    }
    shift = largest + logarithm(add_lanes(sum));
    for (i = 0; i < size; i++) x[i] -= shift;
}

#ifndef ANY_ABOVE
INLINE int any_above(Floats x, Floats bound) {
    const Ints above = x > bound;
    int32_t any = 0;
    for (int i = 0; i < LANES; i++) any |= above[i];
    return any;
}
#define ANY_ABOVE any_above
#endif

static int next_above(const float *x, int from, int size, float bound) {
    while (from + LANES <= size && !ANY_ABOVE(load(x + from), spread(bound))) from += LANES;
    while (from < size && !(x[from] > bound)) from++;
    return from;
}

const Kernels NAME = {
    .name = LABEL,
    .quantize = quantize,
    .linear_float = linear_float,
    .linear_int8 = linear_int8,
    .add = add,
    .layer_norm = layer_norm,
    .rms_norm = rms_norm,
    .activate = activate,
    .attend_memory = attend_memory,
    .attend_rows = attend_rows,
    .log_softmax = log_softmax,
    .next_above = next_above,
};
