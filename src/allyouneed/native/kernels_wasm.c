/* WebAssembly with vectors of 128 bits, for browsers and Node. */

#include <stdint.h>
#include <wasm_simd128.h>

#define LANES 4
#define REGISTERS 8
#define NAME kernels_wasm
#define LABEL "wasm"
#define LEAST -128

typedef int32_t WasmInts __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) WasmInts dot(WasmInts sums, WasmInts weights, WasmInts x) {
    const v128_t w = (v128_t)weights, four = (v128_t)x;
    const v128_t low = wasm_i16x8_extmul_low_i8x16(w, four), high = wasm_i16x8_extmul_high_i8x16(w, four);
    const v128_t even = wasm_i16x8_shuffle(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
    const v128_t odd = wasm_i16x8_shuffle(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
    return sums + (WasmInts)wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_add(even, odd)); /* 2 · 128 · 127 < 2^15 */
}

#define ANY_ABOVE(x, bound) wasm_v128_any_true(wasm_f32x4_gt((v128_t)(x), (v128_t)(bound)))

#include "kernels_body.h"
