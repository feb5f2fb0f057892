// The model in C (native/), compiled to WebAssembly, with the functions that a search needs; see decode/step.py.
//
// `switches` turn parts off, to see what breaks: { positions, scaling, causal, headsOff: Set of "layer name:head" }. A
// model without a part is built again, with other sizes or other weights.

const ALL_ON = { positions: true, scaling: true, causal: true, headsOff: new Set() };

class Model {
  constructor({ config, tensors }, base64) {
    this.config = config;
    this.tensors = tensors;
    this.stored = decodeBase64(base64).buffer;
    this.module = new WebAssembly.Module(decodeBase64(ENGINE));
    this.made = {}; // the newest engine
    this.withSwitches(ALL_ON);
  }

  // Encode the ids of a source, and return the Step of a search.
  start(ids, switches = ALL_ON) {
    return new Step(this.withSwitches(switches), ids, this.config);
  }

  withSwitches(switches) {
    const name = JSON.stringify({ ...switches, headsOff: [...switches.headsOff] });
    if (this.made.name !== name) {
      this.made = {}; // before there is memory for the next
      this.made = { name, engine: new Engine(this.module, ...this.without(switches)) };
    }
    return this.made.engine;
  }

  // Return the sizes in the order of native/library.py and the weights in the order of native/engine.py, with null for
  // missing ones.
  without({ positions, scaling, causal, headsOff }) {
    const sizes = { ...this.config.sizes, acausal: Number(!causal), watched: 1 };
    if (!positions) for (const name of this.config.position_sizes) sizes[name] = 0;
    const normed = new Set(this.tensors.map((tensor) => tensor?.name).filter((name) => name?.endsWith(".query_gain")));
    const weights = this.tensors.map((tensor) => {
      if (!tensor || (!positions && tensor.name.endsWith("_position.encoding"))) return null;
      const [, layer, part] = /(.*?)\.([^.]*(?:\.weight|\.bias)?)$/.exec(tensor.name);
      const isScaled = normed.has(`${layer}.query_gain`) ? part === "query_gain" : part.startsWith("query.");
      const off = part === "output.weight" ? [...headsOff].filter((head) => head.startsWith(`${layer}:`)) : [];
      const factor = !scaling && isScaled ? Math.sqrt(sizes.d_k) : 1;
      const scales = tensor.scales && new Float32Array(this.stored, tensor.scales, tensor.shape[0]).map((scale) => scale * factor);
      const write = (numbers) => {
        this.read(tensor, scales, factor, numbers);
        for (const head of off) silence(numbers, Number(head.split(":")[1]), sizes);
      };
      return { count: tensor.shape.reduce((product, size) => product * size), scales, write };
    });
    return [sizes, weights];
  }

  // Write a weight of the file, times `factor`, into `numbers`. Given level · scale and the scale, C computes the
  // levels again.
  read({ shape: [, columns], offset }, scales, factor, numbers) {
    const stored = new (scales ? Int8Array : Float32Array)(this.stored, offset, numbers.length);
    stored.forEach((number, i) => (numbers[i] = number * (scales ? scales[Math.floor(i / columns)] : factor)));
  }
}

// A head is off if its columns in the output map are 0.
function silence(numbers, head, { heads, d_v: width }) {
  for (let i = head * width; i < numbers.length; i += heads * width) numbers.fill(0, i, i + width);
}

// An instance of the module, which holds one model in its own memory.
class Engine {
  constructor(module, sizes, weights) {
    this.sizes = sizes;
    this.c = new WebAssembly.Instance(module).exports;
    this.c._initialize();
    const addresses = weights.map((weight) => (weight ? this.allocate(4 * weight.count) : 0));
    weights.forEach((weight, i) => weight?.write(this.view(Float32Array, addresses[i], weight.count)));
    const scales = weights.map((weight) => (weight?.scales ? this.place(weight.scales) : 0));
    const error = new Int32Array(1);
    const lists = [addresses, scales].map((list) => Uint32Array.from(list));
    this.model = this.call("model_new", Int32Array.from(Object.values(sizes)), ...lists, 0, error);
    requireOk(error[0]);
    [...addresses, ...scales].forEach((address) => this.c.free(address));
  }

  allocate(bytes) {
    return this.c.malloc(bytes + 1) || requireOk(1);
  }

  // Return a view of numbers in the memory. Any allocation may detach the view.
  view(Numbers, address, count) {
    return new Numbers(this.c.memory.buffer, address, count);
  }

  // Copy an array into the memory.
  place(array) {
    const address = this.allocate(array.byteLength);
    this.view(array.constructor, address, array.length).set(array);
    return address;
  }

  // Call a function that may read and change arrays.
  call(name, ...values) {
    const addresses = values.map((value) => (ArrayBuffer.isView(value) ? this.place(value) : value));
    const arrays = values.map((value, i) => [value, addresses[i]]).filter(([value]) => ArrayBuffer.isView(value));
    const result = this.c[name](...addresses);
    for (const [array, address] of arrays) {
      array.set(this.view(array.constructor, address, array.length));
      this.c.free(address);
    }
    return result;
  }
}

const ERRORS = { 1: "there is not enough memory", 4: "the text is longer than the model reads or writes" };

function requireOk(error) {
  if (error) throw new Error(ERRORS[error] ?? `the engine refuses this with error ${error}`);
}

// A search for one sentence. Queries, keys, values and weights are read after each step; see `search_seen` of engine.h.
class Step {
  constructor(engine, ids, { banned_ids: banned, decode }) {
    this.engine = engine;
    this.source = ids.length;
    this.written = [[]]; // the tokens of each hypothesis, with the start token
    const error = new Int32Array(1);
    const [source, length] = [Int32Array.from(ids), Int32Array.of(ids.length)];
    const options = [Int32Array.from(banned), banned.length, Number(decode.renormalize_logits)];
    this.search = engine.call("search_new", engine.model, source, length, 1, ...options, error);
    requireOk(error[0]);
    this.encoderAttention = this.readEncoder();
  }

  // Make new hypotheses: hypothesis n is `hypotheses[n]` of the previous step, extended by `tokens[n]`.
  next(hypotheses, tokens) {
    this.written = tokens.map((token, n) => [...this.written[hypotheses[n]], token]);
    const { acausal } = this.engine.sizes;
    const rows = acausal ? this.written.flat() : tokens;
    const before = acausal ? rows.map(() => 0) : hypotheses;
    requireOk(this.engine.call("search_step", this.search, Int32Array.from(before), Int32Array.from(rows), rows.length));
    this.readDecoder(hypotheses, rows.length);
  }

  // Return the row with the newest token of a hypothesis. Without the causal mask, each hypothesis has a row for every
  // token.
  row(hypothesis) {
    return this.engine.sizes.acausal ? (hypothesis + 1) * this.written[0].length - 1 : hypothesis;
  }

  // Ban tokens in one hypothesis, unless that would leave none.
  restrict(hypothesis, banned) {
    if (!banned.length) return;
    const ids = [new Int32Array(0), 0, 1, Int32Array.from(banned), banned.length, -1];
    requireOk(this.engine.call("search_restrict", this.search, this.row(hypothesis), ...ids));
  }

  // Find the `count` most likely continuations of hypotheses with these totals, best first.
  best(totals, count) {
    const { acausal, target_vocab_size: vocabulary } = this.engine.sizes;
    const rows = new Float64Array(this.row(totals.length - 1) + 1).fill(-Infinity);
    totals.forEach((total, n) => (rows[this.row(n)] = total));
    const room = Math.min(count, totals.length * vocabulary);
    const found = new Int32Array(rows.length);
    const best = new Int32Array(4 * room); // of each continuation, a total of 64 bits, a row and a token
    this.engine.call("search_best", this.search, rows, room, found, best);
    const total = new Float64Array(best.buffer);
    const hypothesis = (row) => (acausal ? Math.floor(row / this.written[0].length) : row);
    return times(found[0], (i) => ({ total: total[2 * i], hypothesis: hypothesis(best[4 * i + 2]), token: best[4 * i + 3] }));
  }

  // Return the log-probabilities of all tokens, which the next step overwrites.
  logProbabilities(hypothesis) {
    const stride = new Int32Array(1);
    const first = this.engine.call("search_log_probabilities", this.search, stride);
    const { target_vocab_size: vocabulary } = this.engine.sizes;
    return this.engine.view(Float32Array, first + 4 * stride[0] * this.row(hypothesis), vocabulary);
  }

  // Divide all logits by a temperature.
  soften(temperature) {
    for (let n = 0; n < this.written.length; n++) {
      const row = this.logProbabilities(n);
      const sum = row.reduce((total, value) => total + Math.exp(value / temperature), 0);
      row.forEach((value, i) => (row[i] = value / temperature - Math.log(sum)));
    }
  }

  // Read the numbers that the engine has kept; each call reads the next `count`.
  reader() {
    let address = this.engine.c.search_seen(this.search);
    return (count) => {
      const numbers = this.engine.view(Float32Array, address, count).slice();
      address += 4 * count;
      return numbers;
    };
  }

  // Return the rows of one layer: queries, keys and values.
  takeRows(take, count) {
    const { heads, d_k: k, d_v: v } = this.engine.sizes;
    const rows = times(count, () => [take(heads * k), take(heads * k), take(heads * v)]);
    return { query: rows.map((row) => row[0]), key: rows.map((row) => row[1]), value: rows.map((row) => row[2]) };
  }

  // Return the weights by layer, [head][query][key]. `numbers` has the queries, keys and values, one row each for all
  // heads.
  readEncoder() {
    const { heads, d_k: k, d_v: v, encoder_layers: encoder, decoder_layers: decoder } = this.engine.sizes;
    const take = this.reader();
    const seen = {};
    for (let i = 0; i < encoder; i++) {
      const numbers = this.takeRows(take, this.source);
      const weights = times(heads, () => times(this.source, () => take(this.source)));
      seen[`encoder.layers.${i}.attention`] = Object.assign(weights, { numbers });
    }
    this.memory = times(decoder, () => {
      const rows = times(this.source, () => [take(heads * k), take(heads * v)]);
      return { key: rows.map((row) => row[0]), value: rows.map((row) => row[1]) };
    });
    this.past = [times(decoder, () => ({ key: [], value: [] }))]; // of each hypothesis, in each layer
    return seen;
  }

  // Return for each hypothesis the `attention` of its newest position by layer, [head][key], and the `numbers` behind
  // it, which do not exist for a target without the causal mask.
  readDecoder(hypotheses, rows) {
    const { heads, d_k: k, decoder_layers: layers, acausal } = this.engine.sizes;
    const length = this.written[0].length;
    const take = this.reader();
    this.attention = hypotheses.map(() => ({}));
    this.numbers = hypotheses.map(() => ({}));
    const past = hypotheses.map(() => []);
    for (let i = 0; i < layers; i++) {
      const layer = `decoder.layers.${i}`;
      const { query, key, value } = this.takeRows(take, rows);
      const ownWeights = times(rows, () => times(heads, () => take(length)));
      const crossQuery = times(rows, () => take(heads * k));
      const crossWeights = times(rows, () => times(heads, () => take(this.source)));
      hypotheses.forEach((before, n) => {
        const row = this.row(n);
        this.attention[n][`${layer}.self_attention`] = ownWeights[row];
        this.attention[n][`${layer}.cross_attention`] = crossWeights[row];
        if (acausal) return;
        const { key: keys, value: values } = this.past[before][i];
        past[n].push({ key: [...keys, key[n]], value: [...values, value[n]] });
        this.numbers[n][`${layer}.self_attention`] = { query: [query[n]], ...past[n][i] };
        this.numbers[n][`${layer}.cross_attention`] = { query: [crossQuery[n]], ...this.memory[i] };
      });
    }
    if (!acausal) this.past = past;
  }

  free() {
    this.engine.c.search_free(this.search);
  }
}

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

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
