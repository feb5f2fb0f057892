/* x86-64 with AVX2. Its multiplication of bytes takes an unsigned and a signed factor and adds pairs of products in
   16 bits. The sum does not overflow, because two neighbouring weights of the same sign are at most 128 together:
   255 · 128 < 2^15. */

#include <immintrin.h>
#include <stdint.h>

#define LANES 8
#define REGISTERS 8
#define NAME kernels_avx2
#define LABEL "avx2"
#define LEAST 0

typedef int32_t AVXInts __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) AVXInts dot(AVXInts sums, AVXInts weights, AVXInts x) {
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)x, (__m256i)weights);
    return sums + (AVXInts)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

#define ANY_ABOVE(x, bound) _mm256_movemask_ps(_mm256_cmp_ps((__m256)(x), (__m256)(bound), _CMP_GT_OQ))

#include "kernels_body.h"
