/* x86-64 with AVX-512 VNNI: as AVX-VNNI, with registers twice as wide and twice as many. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define LANES 16
#define REGISTERS 24
#define NAME kernels_avx512_vnni
#define LABEL "avx512-vnni"
#define UNSIGNED 1

typedef __m512i Quad;
typedef int32_t AVXInts __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) Quad load_quad(const int8_t *x) {
    int32_t four;
    memcpy(&four, x, 4);
    return _mm512_set1_epi32(four ^ (int32_t)0x80808080);
}

static inline __attribute__((always_inline)) AVXInts dot(AVXInts sums, AVXInts weights, Quad x) {
    return (AVXInts)_mm512_dpbusd_epi32((__m512i)sums, x, (__m512i)weights);
}

#define ANY_ABOVE(x, bound) _mm512_cmp_ps_mask((__m512)(x), (__m512)(bound), _CMP_GT_OQ)

#include "kernels_body.h"
