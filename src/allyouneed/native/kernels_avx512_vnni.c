/* x86-64 with AVX-512 VNNI: like AVX-VNNI, with twice as many registers, which are twice as wide. */

#include <immintrin.h>
#include <stdint.h>

#define LANES 16
#define REGISTERS 24
#define NAME kernels_avx512_vnni
#define LABEL "avx512-vnni"
#define LEAST 0

typedef int32_t AVXInts __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) AVXInts dot(AVXInts sums, AVXInts weights, AVXInts x) {
    return (AVXInts)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)x, (__m512i)weights);
}

#define ANY_ABOVE(x, bound) _mm512_cmp_ps_mask((__m512)(x), (__m512)(bound), _CMP_GT_OQ)

#include "kernels_body.h"
