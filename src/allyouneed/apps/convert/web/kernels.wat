;; The product of a matrix and a vector: result[i] = Σ matrix[i, j] · vector[j], the vector and the result in float32.
;;
;; Parameters are addresses of the memory, in bytes, and sizes. The matrix is row-major; its width must be a positive
;; multiple of 8. The sums of a row are kept in two registers of four lanes.
;;
;; kernels.wasm holds these instructions as bytes: python docs/make/wasm.py
(module
  (memory (import "page" "memory") 1)

  (func (export "multiply_float32")
    (param $matrix i32) (param $vector i32) (param $result i32) (param $height i32) (param $width i32)
    (local $at i32) (local $last i32) (local $low v128) (local $high v128)
    (local.set $last (i32.add (local.get $vector) (i32.shl (local.get $width) (i32.const 2))))
    (loop $row
      (local.set $at (local.get $vector))
      (local.set $low (v128.const i32x4 0 0 0 0))
      (local.set $high (v128.const i32x4 0 0 0 0))
      (loop $column
        (local.set $low (f32x4.add (local.get $low)
          (f32x4.mul (v128.load (local.get $matrix)) (v128.load (local.get $at)))))
        (local.set $high (f32x4.add (local.get $high)
          (f32x4.mul (v128.load offset=16 (local.get $matrix)) (v128.load offset=16 (local.get $at)))))
        (local.set $matrix (i32.add (local.get $matrix) (i32.const 32)))
        (local.set $at (i32.add (local.get $at) (i32.const 32)))
        (br_if $column (i32.lt_u (local.get $at) (local.get $last))))
      (local.set $low (f32x4.add (local.get $low) (local.get $high)))
      (f32.store (local.get $result) (f32.add
        (f32.add (f32x4.extract_lane 0 (local.get $low)) (f32x4.extract_lane 1 (local.get $low)))
        (f32.add (f32x4.extract_lane 2 (local.get $low)) (f32x4.extract_lane 3 (local.get $low)))))
      (local.set $result (i32.add (local.get $result) (i32.const 4)))
      (local.set $height (i32.sub (local.get $height) (i32.const 1)))
      (br_if $row (local.get $height))))

  ;; The same for a matrix of int8, without its scales.
  (func (export "multiply_int8")
    (param $matrix i32) (param $vector i32) (param $result i32) (param $height i32) (param $width i32)
    (local $at i32) (local $last i32) (local $low v128) (local $high v128) (local $eight v128)
    (local.set $last (i32.add (local.get $vector) (i32.shl (local.get $width) (i32.const 2))))
    (loop $row
      (local.set $at (local.get $vector))
      (local.set $low (v128.const i32x4 0 0 0 0))
      (local.set $high (v128.const i32x4 0 0 0 0))
      (loop $column
        (local.set $eight (v128.load8x8_s (local.get $matrix)))
        (local.set $low (f32x4.add (local.get $low) (f32x4.mul
          (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $eight))) (v128.load (local.get $at)))))
        (local.set $high (f32x4.add (local.get $high) (f32x4.mul
          (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $eight))) (v128.load offset=16 (local.get $at)))))
        (local.set $matrix (i32.add (local.get $matrix) (i32.const 8)))
        (local.set $at (i32.add (local.get $at) (i32.const 32)))
        (br_if $column (i32.lt_u (local.get $at) (local.get $last))))
      (local.set $low (f32x4.add (local.get $low) (local.get $high)))
      (f32.store (local.get $result) (f32.add
        (f32.add (f32x4.extract_lane 0 (local.get $low)) (f32x4.extract_lane 1 (local.get $low)))
        (f32.add (f32x4.extract_lane 2 (local.get $low)) (f32x4.extract_lane 3 (local.get $low)))))
      (local.set $result (i32.add (local.get $result) (i32.const 4)))
      (local.set $height (i32.sub (local.get $height) (i32.const 1)))
      (br_if $row (local.get $height)))))
