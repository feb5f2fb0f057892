/* Plain C for any processor: the reference that all other instruction sets must equal bit by bit. */

#include <stdint.h>

#define LANES 4
#define REGISTERS 8
#define NAME kernels_plain
#define LABEL "plain"
#define LEAST -128

typedef int32_t PlainInts __attribute__((vector_size(16)));

static inline PlainInts dot(PlainInts sums, PlainInts weights, PlainInts x) {
    int8_t w[16], four[4];
    __builtin_memcpy(w, &weights, 16);
    __builtin_memcpy(four, &x, 4);
    for (int lane = 0; lane < 4; lane++)
        for (int i = 0; i < 4; i++) sums[lane] += w[4 * lane + i] * four[i];
    return sums;
}

#include "kernels_body.h"
