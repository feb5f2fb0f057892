/* x86-64 with AVX-VNNI: one instruction adds four products of an unsigned and a signed byte in 32 bits. */

#include <immintrin.h>
#include <stdint.h>

#define LANES 8
#define REGISTERS 8
#define NAME kernels_avx_vnni
#define LABEL "avx-vnni"
#define LEAST 0

typedef int32_t AVXInts __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) AVXInts dot(AVXInts sums, AVXInts weights, AVXInts x) {
    return (AVXInts)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)x, (__m256i)weights);
}

#define ANY_ABOVE(x, bound) _mm256_movemask_ps(_mm256_cmp_ps((__m256)(x), (__m256)(bound), _CMP_GT_OQ))

#include "kernels_body.h"
