/* 64-bit ARM. Products of bytes have 16 bits, which are enough for the sum of two products: 2 · 128 · 127 < 2^15. */

#include <arm_neon.h>
#include <stdint.h>

#define LANES 4
#define REGISTERS 16
#define NAME kernels_neon
#define LABEL "neon"
#define LEAST -128

typedef int32_t NEONInts __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) NEONInts dot(NEONInts sums, NEONInts weights, NEONInts x) {
    const int8x16_t w = (int8x16_t)weights, four = (int8x16_t)x;
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(four)), high = vmull_high_s8(w, four);
    return (NEONInts)vpadalq_s16((int32x4_t)sums, vpaddq_s16(low, high));
}

#define ANY_ABOVE(x, bound) vmaxvq_u32(vcgtq_f32((float32x4_t)(x), (float32x4_t)(bound)))

#include "kernels_body.h"
