// The file's weights → tensors by name: { data, rows, columns, scales }, row-major, in the memory of the kernels.
//
// A float32 or float16 weight becomes a Float32Array. An int8 weight stays as it is, with a scale for each row.

// `shared` names tensors that are stored as another; `options` are those of Kernels.
function loadWeights({ config, tensors: index, shared }, base64, options) {
  const stored = decodeBase64(base64).buffer;
  const shapes = index.map(({ shape }) => (shape.length === 2 ? shape : [1, shape[0]]));
  const itemBytes = (dtype) => (dtype === "int8" ? 1 : 4);
  const sizes = index.map(({ dtype }, i) => roundUp(shapes[i][0] * shapes[i][1] * itemBytes(dtype)));
  const longest = Math.max(...shapes.flat());
  const kernels = new Kernels(sizes.reduce((sum, size) => sum + size, 0), longest, options);
  const tensors = {};
  let address = 0;
  index.forEach(({ name, dtype, offset, scales }, i) => {
    const [rows, columns] = shapes[i];
    const count = rows * columns;
    const data = new (dtype === "int8" ? Int8Array : Float32Array)(kernels.buffer, address, count);
    if (dtype === "float16") new Uint16Array(stored, offset, count).forEach((bits, j) => (data[j] = fromFloat16(bits)));
    else data.set(new data.constructor(stored, offset, count));
    tensors[name] = { data, rows, columns, scales: dtype === "int8" ? new Float32Array(stored, scales, rows).slice() : null };
    address += sizes[i];
  });
  for (const [name, original] of Object.entries(shared)) tensors[name] = tensors[original];
  if (config.positions.startsWith("sinusoidal")) {
    const table = sinusoids(config.max_length, config.d_model);
    for (const side of ["source", "target"]) tensors[`${side}_position.encoding`] = table;
  }
  if (config.positions.endsWith("rotary")) {
    const width = tensors["decoder.layers.0.self_attention.key.weight"].rows / config.heads;
    tensors.rotation = sinusoids(config.max_length, 2 * Math.floor(width / 2));
  }
  return { kernels, tensors };
}

function decodeBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const values = new Uint8Array(128);
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let value = 0; value < 64; value++) values[letters.charCodeAt(value)] = value;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  for (let i = 0, to = 0; i < text.length; i += 4, to += 3) {
    const b = values[text.charCodeAt(i + 1)];
    const c = values[text.charCodeAt(i + 2)];
    bytes[to] = (values[text.charCodeAt(i)] << 2) | (b >> 4);
    bytes[to + 1] = (b << 4) | (c >> 2); // past the end of the array nothing is written
    bytes[to + 2] = (c << 6) | values[text.charCodeAt(i + 3)];
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
