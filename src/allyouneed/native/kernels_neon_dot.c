/* ARM with 64 bits and the dot product of bytes, which almost every processor since 2018 has. */

#include <arm_neon.h>
#include <stdint.h>

#define LANES 4
#define REGISTERS 16
#define NAME kernels_neon_dot
#define LABEL "neon-dot"
#define LEAST -128

typedef int32_t NEONInts __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) NEONInts dot(NEONInts sums, NEONInts weights, NEONInts x) {
    return (NEONInts)vdotq_s32((int32x4_t)sums, (int8x16_t)weights, (int8x16_t)x);
}

#define ANY_ABOVE(x, bound) vmaxvq_u32(vcgtq_f32((float32x4_t)(x), (float32x4_t)(bound)))

#include "kernels_body.h"
