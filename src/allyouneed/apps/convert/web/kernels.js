// The product of a matrix and a vector: in WebAssembly with its SIMD instructions (kernels.wat) where there are any, else
// in JavaScript. The matrices lie in a memory of their own, of a fixed size, where the instructions reach them.

const PAGE_BYTES = 65536; // of WebAssembly's memories

class Kernels {
  // Room for `bytes` of tensors, and for a vector and a result of up to `longest` values.
  constructor(bytes, longest, { simd = true } = {}) {
    const scratch = roundUp(bytes);
    const memory = simd ? newMemory(scratch + 8 * roundUp(longest)) : null;
    this.instructions = memory && newInstance(memory);
    this.buffer = this.instructions ? memory.buffer : new ArrayBuffer(scratch + 8 * roundUp(longest));
    this.vector = new Float32Array(this.buffer, scratch, longest);
    this.result = new Float32Array(this.buffer, scratch + 4 * roundUp(longest), longest);
  }

  // What computes the products, for readers.
  get name() {
    return this.instructions ? "WebAssembly" : "JavaScript";
  }

  // Rows (in) → rows (out): x · matrixᵀ + bias.
  linear(x, matrix, bias) {
    const { data, rows, columns, scales } = matrix;
    const shift = bias ? bias.data : null;
    return x.map((row) => {
      this.vector.set(row);
      this.multiply(data, rows, columns);
      const output = this.result.slice(0, rows);
      if (scales) for (let o = 0; o < rows; o++) output[o] *= scales[o];
      if (shift) for (let o = 0; o < rows; o++) output[o] += shift[o];
      return output;
    });
  }

  multiply(data, rows, columns) {
    const { vector, result } = this;
    if (this.instructions && columns % 8 === 0) {
      const { multiply_int8: int8, multiply_float32: float32 } = this.instructions;
      const kernel = data instanceof Int8Array ? int8 : float32;
      kernel(data.byteOffset, vector.byteOffset, result.byteOffset, rows, columns);
    } else multiply(data, vector, result, rows, columns);
  }
}

// The same in JavaScript, for other browsers and for widths that are no multiple of 8.
function multiply(data, vector, result, rows, columns) {
  for (let o = 0, offset = 0; o < rows; o++, offset += columns) {
    let [a, b, c, d] = [0, 0, 0, 0]; // four sums, which the processor can add at once
    let j = 0;
    for (; j + 3 < columns; j += 4) {
      a += data[offset + j] * vector[j];
      b += data[offset + j + 1] * vector[j + 1];
      c += data[offset + j + 2] * vector[j + 2];
      d += data[offset + j + 3] * vector[j + 3];
    }
    for (; j < columns; j++) a += data[offset + j] * vector[j];
    result[o] = a + b + (c + d);
  }
}

const roundUp = (count) => 16 * Math.ceil(count / 16);

// Null where the browser has no WebAssembly, or none with SIMD, or no memory of that size.
function newMemory(bytes) {
  try {
    return new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE_BYTES) });
  } catch {
    return null;
  }
}

function newInstance(memory) {
  try {
    const module = new WebAssembly.Module(decodeBase64(KERNELS));
    return new WebAssembly.Instance(module, { page: { memory } }).exports;
  } catch {
    return null;
  }
}
