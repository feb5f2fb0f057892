// Text → text: the parts of the file put together. `bundle` is what the exporter wrote, parsed from its JSON.

class Translator {
  constructor(bundle, base64) {
    const tensors = loadTensors(bundle.tensors, base64);
    for (const [name, original] of Object.entries(bundle.shared)) tensors[name] = tensors[original];
    if (bundle.config.positions === "sinusoidal") {
      const table = sinusoids(bundle.config.max_length, bundle.config.d_model);
      for (const side of ["source", "target"]) tensors[`${side}_position.encoding`] = table;
    }
    this.config = bundle.config;
    this.model = new Transformer(bundle.config, tensors);
    this.source = new Tokenizer(bundle.source_tokenizer, bundle.normalization);
    this.target = bundle.target_tokenizer ? new Tokenizer(bundle.target_tokenizer, bundle.normalization) : this.source;
  }

  // Everything the page shows of one translation.
  translate(text, options = {}) {
    const ids = this.source.encode(text);
    if (ids.length > this.config.max_length) {
      throw new Error(`the text has ${ids.length} tokens; the model reads at most ${this.config.max_length}`);
    }
    const { hypotheses, encoderAttention } = search(this.model, ids, options);
    return {
      source: ids.map((id) => this.source.piece(id)),
      encoderAttention,
      hypotheses: hypotheses.map((hypothesis) => ({
        text: this.target.decode(hypothesis.ids),
        score: hypothesis.score,
        finished: hypothesis.finished,
        steps: hypothesis.steps.map((step) => ({
          piece: this.target.piece(step.token),
          probability: Math.exp(step.logProbability),
          attention: step.attention,
          top: step.top.map(({ token, logProbability }) => ({
            piece: this.target.piece(token),
            probability: Math.exp(logProbability),
          })),
        })),
      })),
    };
  }
}
