/* x86-64 with AVX2. Its multiplication of bytes takes one signed and one unsigned factor and adds pairs in 16 bits:
   |x| · (w with the sign of x) cannot overflow them, as 2 · 127 · 127 < 2^15. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define LANES 8
#define REGISTERS 8
#define NAME kernels_avx2
#define LABEL "avx2"
#define UNSIGNED 0

typedef struct { __m256i number, magnitude; } Quad;
typedef int32_t AVXInts __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) Quad load_quad(const int8_t *x) {
    int32_t four;
    Quad quad;
    memcpy(&four, x, 4);
    quad.number = _mm256_set1_epi32(four);
    quad.magnitude = _mm256_abs_epi8(quad.number);
    return quad;
}

static inline __attribute__((always_inline)) AVXInts dot(AVXInts sums, AVXInts weights, Quad x) {
    const __m256i pairs = _mm256_maddubs_epi16(x.magnitude, _mm256_sign_epi8((__m256i)weights, x.number));
    return sums + (AVXInts)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

#define ANY_ABOVE(x, bound) _mm256_movemask_ps(_mm256_cmp_ps((__m256)(x), (__m256)(bound), _CMP_GT_OQ))

#include "kernels_body.h"
