// The model in a page: text → text. `translateText` cuts a text into sentences; `translate` takes it for one. No file of
// this library touches a page, so it runs in a worker as well.
//
//   const translator = new Translator(bundle, weights);   // what the exporter wrote: parsed JSON, and base64 text
//   const { hypotheses } = translator.translate("a text", { beam: 4 });
//
// Options of translate, all of which may be left out:
//   beam         hypotheses that the search keeps; 1, as by default, is greedy search
//   temperature  above 1 the probabilities are flatter, below 1 steeper
//   switches     parts to turn off: { positions, scaling, causal } are false where they are off, and `headsOff` has the
//                heads that are, "decoder.layers.0.cross_attention:3"; `translator.layers` has the names
//   numbers      true: the result has the queries, keys and values that its attention is computed from
//   maxLength    of a translation, in tokens; by default that of the bundle
//
// The result; a token is named by its piece, in which ␣ stands for a blank:
//   source            pieces of the text, with <sos> and <eos>
//   hypotheses        the best first: { text, score, finished, steps }; `finished` is false where one was cut off
//     steps           for each token { piece, probability, top: [{ piece, probability, chosen }], attention }, where `top`
//                     has the five likeliest tokens, and attention[layer][head][key] says what this step
//                     attends to, and with `numbers` also numbers[layer].query, .key and .value: rows for all heads, of
//                     the query that of this step; without the causal mask there are none
//   beam              for each step of the search its candidates, the best first: { piece, total, parent, fate }; `total`
//                     is a log-probability, `parent` counts those kept in the step before, and `fate` is "kept" (goes
//                     on), "ended" (a hypothesis) or "dropped"
//   encoderAttention  encoderAttention[layer][head][query][key]
// A blank text has no hypotheses and no steps. A text that the vocabulary cannot spell, or that is too long, raises an
// Error with a sentence for readers.

class Translator {
  constructor(bundle, weights) {
    this.config = bundle.config;
    this.splitting = bundle.splitting;
    this.model = new Model(bundle, weights);
    this.source = new Tokenizer(bundle.source_tokenizer, bundle.normalization);
    this.target = bundle.target_tokenizer ? new Tokenizer(bundle.target_tokenizer, bundle.normalization) : this.source;
  }

  // Every attention sublayer, from the first of the encoder to the last of the decoder: { name, title, heads }.
  get layers() {
    return attentionLayers(this.config.sizes);
  }

  // The bytes that the model takes, and the searches so far.
  get memory() {
    return this.model.made.engine.c.memory.buffer.byteLength;
  }

  // A text sentence by sentence: { text, sentences, results }, the results as those of `translate`, one a sentence.
  translateText(text, options = {}) {
    const { sentences, gaps } = splitText(withoutMark(text), this.splitting);
    const results = sentences.map((sentence) => this.translate(sentence, options));
    const texts = results.map(({ hypotheses }) => hypotheses[0].text);
    return { text: gaps.map((gap, i) => gap + (texts[i] ?? "")).join(""), sentences, results };
  }

  translate(text, options = {}) {
    if (!text.trim()) return { source: [], hypotheses: [], beam: [], encoderAttention: {} };
    const ids = this.source.encode(withoutMark(text));
    const { max_length: longest } = this.config.sizes;
    if (ids.length > longest) {
      throw new Error(`the text has ${ids.length} tokens; the model reads at most ${longest}`);
    }
    const switches = { ...ALL_ON, ...options.switches };
    switches.headsOff = new Set(switches.headsOff);
    const { hypotheses, beam, encoderAttention } = search(this.model, ids, { ...options, switches });
    const likely = ({ token, logProbability }) => ({ piece: this.target.piece(token), probability: Math.exp(logProbability) });
    return {
      source: ids.map((id) => this.source.piece(id)),
      encoderAttention,
      beam: beam.map((candidates) => candidates.map(({ token, ...rest }) => ({ piece: this.target.piece(token), ...rest }))),
      hypotheses: hypotheses.map((hypothesis) => ({
        text: this.target.decode(hypothesis.ids),
        score: hypothesis.score,
        finished: hypothesis.finished,
        steps: hypothesis.steps.map((step) => ({ ...likely(step), attention: step.attention, numbers: step.numbers, top: step.top.map((one) => ({ ...likely(one), chosen: one.token === step.token })) })),
      })),
    };
  }
}

// A byte order mark is not text.
const withoutMark = (text) => text.replace(/^\ufeff/, "");

function attentionLayers({ encoder_layers: encoder, decoder_layers: decoder, heads }) {
  const layers = [];
  for (let i = 0; i < encoder; i++) {
    layers.push({ name: `encoder.layers.${i}.attention`, title: `encoder ${i + 1}, self-attention`, heads });
  }
  for (let i = 0; i < decoder; i++) {
    layers.push({ name: `decoder.layers.${i}.self_attention`, title: `decoder ${i + 1}, self-attention`, heads });
    layers.push({ name: `decoder.layers.${i}.cross_attention`, title: `decoder ${i + 1}, cross-attention`, heads });
  }
  return layers;
}
