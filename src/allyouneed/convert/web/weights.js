// The file's weights → tensors by name: { data, rows, columns, scales }, row-major.
//
// A float32 or float16 weight becomes a Float32Array. An int8 weight stays as it is, with a scale for each row.

function loadTensors(index, base64) {
  const bytes = decodeBase64(base64);
  const tensors = {};
  for (const { name, shape, dtype, offset, scales } of index) {
    const [rows, columns] = shape.length === 2 ? shape : [1, shape[0]];
    const count = rows * columns;
    const buffer = bytes.buffer;
    let data;
    if (dtype === "int8") data = new Int8Array(buffer, offset, count);
    else if (dtype === "float16") data = Float32Array.from(new Uint16Array(buffer, offset, count), fromFloat16);
    else data = new Float32Array(buffer, offset, count);
    tensors[name] = { data, rows, columns, scales: dtype === "int8" ? new Float32Array(buffer, scales, rows) : null };
  }
  return tensors;
}

function decodeBase64(text) {
  const values = new Uint8Array(128);
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".split("").forEach((letter, value) => {
    values[letter.charCodeAt(0)] = value;
  });
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  for (let i = 0, to = 0; i < text.length; i += 4, to += 3) {
    const [a, b, c, d] = [0, 1, 2, 3].map((j) => values[text.charCodeAt(i + j)]);
    bytes[to] = (a << 2) | (b >> 4);
    bytes[to + 1] = (b << 4) | (c >> 2); // past the end of the array nothing is written
    bytes[to + 2] = (c << 6) | d;
  }
  return bytes;
}

function fromFloat16(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * 2 ** -24 * fraction; // subnormal
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

// §3.5: sines and cosines in turn, for each position.
function sinusoids(length, width) {
  const data = new Float32Array(length * width);
  for (let position = 0; position < length; position++) {
    for (let i = 0; i < width; i += 2) {
      const angle = position * Math.exp((i * -Math.log(10000)) / width);
      data[position * width + i] = Math.sin(angle);
      data[position * width + i + 1] = Math.cos(angle);
    }
  }
  return { data, rows: length, columns: width, scales: null };
}
