/* ARM with 64 bits. Products of bytes are made in 16 bits, then added in pairs to 32. */

#include <arm_neon.h>
#include <stdint.h>

#define LANES 4
#define REGISTERS 16
#define NAME kernels_neon
#define LABEL "neon"
#define UNSIGNED 0

typedef int8x16_t Quad;
typedef int32_t NEONInts __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) Quad load_quad(const int8_t *x) {
    return vreinterpretq_s8_s32(vld1q_dup_s32((const int32_t *)x)); /* inputs are padded to whole quads, and aligned */
}

static inline __attribute__((always_inline)) NEONInts dot(NEONInts sums, NEONInts weights, Quad x) {
    const int8x16_t w = (int8x16_t)weights;
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
    return sums + (NEONInts)vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
}

#define ANY_ABOVE(x, bound) vmaxvq_u32(vcgtq_f32((float32x4_t)(x), (float32x4_t)(bound)))

#include "kernels_body.h"
