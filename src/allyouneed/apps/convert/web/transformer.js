// Figure 1 of "Attention Is All You Need", for one sentence at a time. A row is the vector of one position.
//
// `switches` turn parts off, to see what breaks: { positions, scaling, causal, headsOff: Set of "layer name:head" }. With
// `numbers` the attention weights have queries, keys and values, a row each for all heads, as `numbers`.

const ALL_ON = { positions: true, scaling: true, causal: true, headsOff: new Set(), numbers: false };

class Transformer {
  constructor(config, { kernels, tensors }) {
    this.config = config;
    this.kernels = kernels;
    this.tensors = tensors;
  }

  // Source ids → the keys and values of the memory for each layer of the decoder, and the encoder's attention weights.
  encode(ids, switches = ALL_ON) {
    const { encoder_layers: layers } = this.config;
    const seen = {};
    const start = switches.positions ? 0 : null;
    let x = this.embed(ids, "source", start);
    for (let i = 0; i < layers; i++) {
      const layer = `encoder.layers.${i}`;
      x = this.residual(x, `${layer}.attention_residual`, (y) => {
        const [keys, values] = this.projectKeysAndValues(y, `${layer}.attention`, start);
        return this.attend(y, keys, values, `${layer}.attention`, switches, seen, { start });
      });
      x = this.residual(x, `${layer}.feed_forward_residual`, (y) => this.feedForward(y, `${layer}.feed_forward`));
    }
    x = this.closingNorm(x, "encoder");
    const memory = [];
    for (let i = 0; i < this.config.decoder_layers; i++) {
      memory.push(this.projectKeysAndValues(x, `decoder.layers.${i}.cross_attention`));
    }
    return { memory, seen };
  }

  // The state before the first token. States are never changed, so hypotheses may share one.
  start(encoded) {
    return { memory: encoded.memory, caches: encoded.memory.map(() => [[], []]), length: 0 };
  }

  // The next tokens of a target and the state before them → log-probabilities after the last, and the state after it.
  decode(tokens, state, switches = ALL_ON) {
    const seen = {};
    const caches = [];
    const start = switches.positions ? state.length : null;
    const visible = switches.causal ? (position) => state.length + position + 1 : undefined;
    let x = this.embed(tokens, "target", start);
    for (let i = 0; i < this.config.decoder_layers; i++) {
      const layer = `decoder.layers.${i}`;
      x = this.residual(x, `${layer}.self_attention_residual`, (y) => {
        const [newKeys, newValues] = this.projectKeysAndValues(y, `${layer}.self_attention`, start);
        const keys = state.caches[i][0].concat(newKeys);
        const values = state.caches[i][1].concat(newValues);
        caches.push([keys, values]);
        return this.attend(y, keys, values, `${layer}.self_attention`, switches, seen, { start, visible });
      });
      x = this.residual(x, `${layer}.cross_attention_residual`, (y) =>
        this.attend(y, ...state.memory[i], `${layer}.cross_attention`, switches, seen),
      );
      x = this.residual(x, `${layer}.feed_forward_residual`, (y) => this.feedForward(y, `${layer}.feed_forward`));
    }
    x = this.closingNorm(x, "decoder");
    const bias = this.tensors["projection.bias"] || null;
    const [logits] = this.kernels.linear([x[x.length - 1]], this.tensors["projection.table"], bias);
    const next = { memory: state.memory, caches, length: state.length + tokens.length };
    const { banned_ids: banned, decode } = this.config;
    return { logProbabilities: logSoftmax(logits, banned, decode.renormalize_logits), state: next, seen };
  }

  // §3.4, §3.5: a row of the table times √d_model, plus the encoding of the position, `start` that of the first. Nothing
  // is added without a start (positions are switched off) or an encoding (they are rotary).
  embed(ids, side, start) {
    const { data, columns, scales } = this.tensors[`${side}_embedding.table`];
    const positions = start === null ? undefined : this.tensors[`${side}_position.encoding`]?.data;
    const factor = Math.sqrt(columns);
    return ids.map((id, index) => {
      const row = new Float32Array(columns);
      const scale = factor * (scales ? scales[id] : 1);
      for (let j = 0; j < columns; j++) {
        row[j] = data[id * columns + j] * scale + (positions ? positions[(start + index) * columns + j] : 0);
      }
      return row;
    });
  }

  // §3.1: add & norm, after the sublayer ("post") or before it ("pre").
  residual(x, name, sublayer) {
    const before = this.config.norm === "pre";
    const sums = sublayer(before ? this.norm(x, `${name}.norm`) : x);
    sums.forEach((row, i) => {
      for (let j = 0; j < row.length; j++) row[j] += x[i][j];
    });
    return before ? sums : this.norm(sums, `${name}.norm`);
  }

  closingNorm(x, stack) {
    return this.config.norm === "pre" ? this.norm(x, `${stack}.norm`) : x;
  }

  norm(x, name) {
    const gain = this.tensors[`${name}.gain`].data;
    const bias = this.tensors[`${name}.bias`].data;
    return x.map((row) => {
      let mean = 0;
      for (let j = 0; j < row.length; j++) mean += row[j];
      mean /= row.length;
      let variance = 0;
      for (let j = 0; j < row.length; j++) variance += (row[j] - mean) ** 2;
      const factor = 1 / Math.sqrt(variance / row.length + this.config.norm_eps);
      const output = new Float32Array(row.length);
      for (let j = 0; j < row.length; j++) output[j] = (row[j] - mean) * factor * gain[j] + bias[j];
      return output;
    });
  }

  // §3.3: two linear maps with an activation between.
  feedForward(x, name) {
    const activation = ACTIVATIONS[this.config.activation];
    const inner = this.linear(x, `${name}.inner`).map((row) => row.map(activation));
    return this.linear(inner, `${name}.outer`);
  }

  projectKeysAndValues(x, name, start = null) {
    return [this.projectAdjusted(x, `${name}.key`, start), this.linear(x, `${name}.value`)];
  }

  // Queries or keys as their products need them: normalized in each head if they have a gain (query-key norm), then
  // rotated if the positions are rotary and there is a `start`, the position of the first row.
  projectAdjusted(x, name, start) {
    const gain = this.tensors[`${name}_gain`];
    const rotation = start === null ? undefined : this.tensors.rotation;
    const rows = this.linear(x, name);
    rows.forEach((row, i) => {
      if (gain) normalizeHeads(row, gain.data, this.config.query_key_norm_eps);
      if (rotation) rotateHeads(row, this.config.heads, rotation, start + i);
    });
    return rows;
  }

  // §3.2: attention in each head; position i of the queries sees the first `visible(i)` keys, or all of them.
  attend(x, keys, values, name, switches, seen, { start = null, visible = () => keys.length } = {}) {
    const { heads } = this.config;
    const queries = this.projectAdjusted(x, `${name}.query`, start);
    const keyWidth = queries[0].length / heads;
    const valueWidth = values[0].length / heads;
    const scale = switches.scaling ? 1 / Math.sqrt(keyWidth) : 1;
    const weights = Array.from({ length: heads }, () => []); // [head][query][key]
    const mixed = queries.map((query, i) => {
      const output = new Float32Array(heads * valueWidth);
      for (let h = 0; h < heads; h++) {
        const scores = new Float32Array(visible(i));
        for (let k = 0; k < scores.length; k++) {
          let score = 0;
          for (let j = h * keyWidth; j < (h + 1) * keyWidth; j++) score += query[j] * keys[k][j];
          scores[k] = score * scale;
        }
        softmax(scores);
        weights[h].push(scores);
        if (switches.headsOff.has(`${name}:${h}`)) continue;
        for (let k = 0; k < scores.length; k++) {
          for (let j = h * valueWidth; j < (h + 1) * valueWidth; j++) output[j] += scores[k] * values[k][j];
        }
      }
      return output;
    });
    if (switches.numbers) weights.numbers = { query: queries, key: keys, value: values };
    seen[name] = weights;
    return this.linear(mixed, `${name}.output`);
  }

  linear(x, name) {
    return this.kernels.linear(x, this.tensors[`${name}.weight`], this.tensors[`${name}.bias`]);
  }
}

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
};

// Query-key norm: each head divided by the root of the mean of its squares, times gains that all heads share.
function normalizeHeads(row, gain, eps) {
  const width = gain.length;
  for (let head = 0; head < row.length; head += width) {
    let squares = 0;
    for (let j = head; j < head + width; j++) squares += row[j] ** 2;
    const factor = 1 / Math.sqrt(squares / width + eps);
    for (let j = 0; j < width; j++) row[head + j] *= factor * gain[j];
  }
}

// Rotary positions: number i of the first half of a head and number i of the second half are a pair, which is rotated by
// angle i of the position, given by its sine and cosine. Of an odd width the last number stays.
function rotateHeads(row, heads, { data, columns }, position) {
  const half = columns / 2;
  for (let head = 0; head < row.length; head += row.length / heads) {
    for (let i = 0; i < half; i++) {
      const [sine, cosine] = [data[position * columns + 2 * i], data[position * columns + 2 * i + 1]];
      const [first, second] = [row[head + i], row[head + half + i]];
      row[head + i] = first * cosine - second * sine;
      row[head + half + i] = first * sine + second * cosine;
    }
  }
}

function softmax(scores) {
  let highest = -Infinity;
  for (const score of scores) highest = Math.max(highest, score);
  let sum = 0;
  for (let i = 0; i < scores.length; i++) sum += scores[i] = Math.exp(scores[i] - highest);
  for (let i = 0; i < scores.length; i++) scores[i] /= sum;
}

// The log-probabilities of logits; those of `banned` ids are minus infinity, and if `renormalize`, the others share what
// they had.
function logSoftmax(logits, banned, renormalize = true) {
  if (renormalize) for (const id of banned) logits[id] = -Infinity;
  let highest = -Infinity;
  for (let i = 0; i < logits.length; i++) highest = Math.max(highest, logits[i]);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i] - highest);
  const normalizer = highest + Math.log(sum);
  const logProbabilities = logits.map((logit) => logit - normalizer);
  for (const id of banned) logProbabilities[id] = -Infinity;
  return logProbabilities;
}

// The error function, by the series erf(x) = 2/√π Σ (−1)ⁿ x²ⁿ⁺¹ / (n! (2n + 1)); beyond ±4 it is 1 but for 2·10⁻⁸.
function erf(x) {
  if (Math.abs(x) > 4) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-12; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
