/* WebAssembly with vectors of 128 bits, for browsers and Node. */

#include <stdint.h>
#include <wasm_simd128.h>

#define LANES 4
#define REGISTERS 8
#define NAME kernels_wasm
#define LABEL "wasm"
#define UNSIGNED 0

typedef v128_t Quad;
typedef int32_t WasmInts __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) Quad load_quad(const int8_t *x) { return wasm_v128_load32_splat(x); }

static inline __attribute__((always_inline)) WasmInts dot(WasmInts sums, WasmInts weights, Quad x) {
    const v128_t w = (v128_t)weights;
    const v128_t low = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extmul_low_i8x16(w, x));
    const v128_t high = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extmul_high_i8x16(w, x));
    const v128_t even = wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), odd = wasm_i32x4_shuffle(low, high, 1, 3, 5, 7);
    return sums + (WasmInts)wasm_i32x4_add(even, odd);
}

#define ANY_ABOVE(x, bound) wasm_v128_any_true(wasm_f32x4_gt((v128_t)(x), (v128_t)(bound)))

#include "kernels_body.h"
