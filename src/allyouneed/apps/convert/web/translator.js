// Translate texts in a page. `translateText` cuts a text into sentences, as translator/split_texts.py does; `translate`
// takes its text for one sentence. This library never touches the page, so it also runs in a worker.
//
//   const translator = new Translator(bundle, weights);   // what the exporter wrote: parsed JSON, and base64 text
//   const { text, flags } = translator.translateText("A text. Or two.", { beam: 4 });
//
// Options of translate, all of which may be left out:
//   beam         hypotheses that the search keeps; 1, as by default, is greedy search
//   temperature  above 1 the probabilities are flatter, below 1 steeper
//   switches     parts to turn off: { positions, scaling, causal } are false where they are off, and `headsOff` has the
//                heads that are, "decoder.layers.0.cross_attention:3"; `translator.layers` has the names
//   numbers      true: the result has the queries, keys and values that its attention is computed from
//   maxLength    of a translation, in tokens; by default that of the bundle
//
// The result, where what tells of the search is that of the first part of a long sentence; a token is named by its piece, in
// which ␣ stands for a blank:
//   text              the translation
//   flags             what translator/translation.py says of it
//   source            pieces of the text, with <sos> and <eos>; `sourceIds` are their ids
//   hypotheses        the best first: { text, score, finished, steps }; `finished` is false where one was cut off
//     steps           for each token { id, piece, probability, top: [{ piece, probability, chosen }], attention }, where `top`
//                     has the five likeliest tokens, and attention[layer][head][key] says what this step
//                     attends to, and with `numbers` also numbers[layer].query, .key and .value: rows for all heads, of
//                     the query that of this step; without the causal mask there are none
//   beam              for each step of the search its candidates, the best first: { piece, total, parent, fate }; `total`
//                     is a log-probability, `parent` counts those kept in the step before, and `fate` is "kept" (goes
//                     on), "ended" (a hypothesis) or "dropped"
//   encoderAttention  encoderAttention[layer][head][query][key]
// A text that is blank or copied has no hypotheses and no steps. A text that the vocabulary cannot spell, or that is
// too long, raises an Error with a readable message.

class Translator {
  constructor(bundle, weights) {
    this.config = bundle.config;
    this.rules = bundle.rules;
    this.splitting = makeSplitting(bundle.rules.splitting);
    this.copies = new Copies(bundle.rules.copies);
    this.capitals = new Capitals(bundle.rules.capitals);
    this.model = new Model(bundle, weights);
    this.source = new Tokenizer(bundle.source_tokenizer, bundle.normalization);
    this.target = bundle.target_tokenizer ? new Tokenizer(bundle.target_tokenizer, bundle.normalization) : this.source;
    this.constraints = new Constraints(bundle.rules, this.target);
  }

  // List every attention sublayer, from the first of the encoder to the last of the decoder: { name, title, heads }.
  get layers() {
    return attentionLayers(this.config.sizes);
  }

  // Return the number of bytes of the model, and the number of searches so far.
  get memory() {
    return this.model.made.engine.c.memory.buffer.byteLength;
  }

  // Translate a text sentence by sentence: { text, flags, sentences, results }; the results are those of `translate`,
  // one per sentence.
  translateText(text, options = {}) {
    const { sentences, gaps } = splitText(withoutMark(text), this.splitting);
    const tag = this.source.languageTag(text); // each sentence is translated alone, and needs it
    const results = sentences.map((sentence) => this.translate(sentence.startsWith(tag) ? sentence : `${tag} ${sentence}`, options));
    const flags = joinFlags(results);
    if (!results.every((one) => one.flags.includes("copied"))) flags.delete("copied");
    return { text: gaps.map((gap, i) => gap + (results[i]?.text ?? "")).join(""), flags: [...flags], sentences, results };
  }

  translate(text, options = {}) {
    text = this.source.normalize(withoutMark(text));
    if (!text.trim()) return NOTHING;
    const isCopied = this.rules.copyUntranslatable && this.copies.isCopied(text);
    const small = !isCopied && this.rules.recase && this.capitals.isUnusual(text) && this.capitals.toSentenceCase(text);
    const isRecased = small !== false && this.source.canEncode(small);
    if (isRecased || (isCopied && this.copies.isContradicted(text))) {
      const answer = this.answerAsIs(text, options);
      if (answer) return answer;
    }
    if (isCopied) return { ...NOTHING, text: text.trim(), flags: ["copied"] };
    return isRecased ? inCapitals(this.translateSentence(small, options)) : this.translateSentence(text, options);
  }

  // Return the translation of the unchanged text if the model can read it and is sure of the translation; otherwise
  // null.
  answerAsIs(text, options) {
    if (!this.source.canEncode(text) || this.source.encodeNormal(text).includes(this.source.unk)) return null;
    const result = this.translateSentence(text, options);
    const isSure = result.tokens > 0 && !result.flags.includes("unfinished") && result.total / result.tokens >= RULES.sure;
    return isSure ? result : null;
  }

  translateSentence(text, options) {
    const parts = this.cutSentence(text);
    const results = parts.map((part) => this.translatePart(part, options));
    if (parts.length === 1) return results[0];
    const flags = joinFlags(results).add("split");
    const joined = results.map((one) => one.text).join(blankBetween(this.splitting.languages[1]));
    if (this.constraints.differ(parts.join(" "), joined)) flags.add("wrong_spans");
    const [total, tokens] = ["total", "tokens"].map((name) => results.reduce((sum, one) => sum + one[name], 0));
    return { ...results[0], text: joined, flags: [...flags], total, tokens };
  }

  // Cut a sentence into parts that are not longer than the training sources.
  cutSentence(text) {
    const lengthOf = (part) => this.source.encodeNormal(part).length;
    if (lengthOf(text) <= this.rules.longestSource) return [text];
    const tag = this.source.languageTag(text);
    const longest = this.rules.longestSource - (tag ? lengthOf(tag) : 0);
    const whole = this.constraints.spans(text);
    return cut(text, (part) => lengthOf(part) <= longest, this.splitting, whole).map((part, i) => (i && tag ? `${tag} ${part}` : part));
  }

  translatePart(text, options) {
    const source = this.source.encodeNormal(text);
    const { max_length: longest } = this.config.sizes;
    if (source.length > longest) {
      throw new Error(`the text has ${source.length} tokens and no place to cut it; the model reads at most ${longest}`);
    }
    const switches = { ...ALL_ON, ...options.switches };
    switches.headsOff = new Set(switches.headsOff);
    const request = { ...options, switches, boundaries: this.constraints.boundaries, phrases: this.constraints.phrases(text) };
    const { found, repeats } = this.generate(source, request);
    if (!found.hypotheses.length) {
      throw new Error(`no translation of “${text}” contains all that it must within ${this.config.decode.max_length} tokens`);
    }
    const { hypotheses, beam, encoderAttention } = this.searchForSpans(text, source, request, found);
    const [best] = hypotheses;
    const translation = this.writtenBy(best, text);
    const untagged = text.slice(this.source.languageTag(text).length);
    const isLost = runsAreLost(this.copies.foreignRuns(untagged), untagged, translation);
    const flags = {
      repeats,
      wrong_spans: isLost || this.constraints.differ(text, translation) || (this.rules.checksCodes && codesDiffer(untagged, translation)),
      unfinished: !best.finished,
      long: source.length > this.rules.longestSource,
      unknown: this.source.unk !== undefined && source.includes(this.source.unk),
    };
    const likely = ({ token, logProbability }) => ({ piece: this.target.piece(token), probability: Math.exp(logProbability) });
    return {
      text: translation,
      flags: Object.keys(flags).filter((name) => flags[name]),
      total: best.total,
      tokens: tokensOf(best),
      source: source.map((id) => this.source.piece(id)),
      sourceIds: source,
      encoderAttention,
      beam: beam.map((candidates) => candidates.map(({ token, ...rest }) => ({ piece: this.target.piece(token), ...rest }))),
      hypotheses: hypotheses.map((hypothesis) => ({
        text: this.writtenBy(hypothesis, text),
        score: hypothesis.score,
        finished: hypothesis.finished,
        steps: hypothesis.steps.map((step) => ({ id: step.token, ...likely(step), attention: step.attention, numbers: step.numbers, top: step.top.map((one) => ({ ...likely(one), chosen: one.token === step.token })) })),
      })),
    };
  }

  // Return the text of a hypothesis. Each <unk> becomes the unknown character of the source, as in
  // `Aligner.replace_unknown`. In an unsure translation, blanks next to placeholders are made the same as in the
  // source.
  writtenBy(hypothesis, source) {
    const text = this.withoutUnknown(this.target.decode(hypothesis.ids), hypothesis.ids, source);
    return isSure(hypothesis) ? text : separatePlaceholders(source, text);
  }

  withoutUnknown(written, ids, source) {
    if (!this.rules.replaceUnknown || !ids.includes(this.target.unk)) return written;
    const read = this.source.unknownCharacters(source);
    const replaced = read.reduce((text, character) => text.replace("<unk>", () => character), written);
    return this.target.composed(read.length ? replaced.replaceAll("<unk>", () => read.at(-1)) : replaced);
  }

  // Search as `TranslationGenerator.generate` does: without phrases that do not fit, and again if the best hypothesis
  // repeats itself.
  generate(source, request) {
    const { max_length: limit } = this.config.decode;
    const find = (changes) => {
      const wanted = { ...request, ...changes };
      return fewestTokens(wanted.phrases) <= limit ? search(this.model, source, wanted) : { hypotheses: [], beam: [], encoderAttention: {} };
    };
    let found = find({});
    if (!found.hypotheses.length && request.phrases.length && !this.rules.mustCopy) found = find({ phrases: [] });
    const [best] = found.hypotheses;
    const repeats = Boolean(best) && this.rules.retryRepetition && !isSure(best) && this.isRepetitive(best.ids, source);
    if (repeats) {
      const again = find({ ngram: Math.max(3, longestRepetition(best.ids).period) });
      if (again.hypotheses.length && confidence(again.hypotheses[0]) >= RULES.nearly * confidence(best)) found = again;
    }
    return { found, repeats };
  }

  isRepetitive(ids, source) {
    const { length } = longestRepetition(ids);
    const isWord = (id) => {
      const words = this.target.decode([id, id]).split(/\s+/).filter(Boolean);
      return words.length === 2 && words[0].length > 1 && /^\p{L}+$/u.test(words[0]);
    };
    let inARow = 0;
    const isRun = ids.some((id, i) => (inARow = id === ids[i - 1] ? inARow + 1 : 1) >= RULES.wordsInARow && isWord(id));
    const isLong = length >= RULES.worthMentioning || isRun;
    return isLong && length > Math.max(this.rules.longestRepetition, 2 * longestRepetition(source).length);
  }

  // Search as `search_for_spans` does: if the spans of the best hypothesis differ from the text's, try wider beams with
  // limits on surplus spans.
  searchForSpans(text, source, request, found) {
    const { constraints, target } = this;
    const isWrong = ({ ids }) => constraints.differ(text, target.decode(ids));
    let [worst] = found.hypotheses;
    if (!isWrong(worst)) return found;
    const markers = new Map();
    let extra = "";
    const beam = Math.max(4, request.beam ?? 1);
    for (let turn = 0; turn < RULES.tries; turn++) {
      const written = target.decode(worst.ids);
      const spans = constraints.extra(text, written);
      const tokens = constraints.markers(worst.ids, spans);
      if (turn && tokens.every((token) => markers.has(token))) break;
      for (const token of tokens) markers.set(token, sumOfMost(request.phrases, token));
      extra += ["", ...spans.map((span) => span.text)].join(" ");
      const atMost = constraints.limits(text, extra);
      for (const [token, highest] of markers) atMost.push({ weights: new Map([[token, 1]]), highest });
      const wider = { ...request, beam, nbest: beam, atMost, orders: constraints.orders(text) };
      const again = search(this.model, source, wider);
      const tried = again.hypotheses.slice(0, beam);
      const right = tried.find((one) => !isWrong(one));
      if (right) return { ...again, hypotheses: [right, ...again.hypotheses.filter((one) => one !== right)] };
      if (!tried.length) break;
      [worst] = tried;
    }
    return found;
  }
}

const NOTHING = { text: "", flags: [], total: 0, tokens: 0, source: [], sourceIds: [], hypotheses: [], beam: [], encoderAttention: {} };

// A byte order mark is not text.
const withoutMark = (text) => text.replace(/^\ufeff/, "");

const tokensOf = ({ ids, finished }) => ids.length + Number(finished);
const confidence = (hypothesis) => hypothesis.total / Math.max(tokensOf(hypothesis), 1);
const isSure = (hypothesis) => hypothesis.finished && confidence(hypothesis) >= RULES.sure;
const joinFlags = (results) => new Set(results.flatMap(({ flags }) => flags));
const sumOfMost = (phrases, token) =>
  phrases.reduce((sum, { spellings, times }) => sum + times * Math.max(...spellings.map((ids) => ids.filter((id) => id === token).length)), 0);

function inCapitals(result) {
  const hypotheses = result.hypotheses.map((one) => ({ ...one, text: toCapitals(one.text) }));
  return { ...result, text: toCapitals(result.text), hypotheses, flags: ["recased", ...result.flags] };
}

// See translator/repetition.py.
function longestRepetition(ids) {
  let best = { period: 0, length: 0 };
  for (let period = 1; period <= Math.min(RULES.longestPeriod, Math.floor(ids.length / 3)); period++) {
    let same = 0;
    for (let i = period; i < ids.length; i++) {
      same = ids[i] === ids[i - period] ? same + 1 : 0;
      if (same >= 2 * period && same + period > best.length) best = { period, length: same + period };
    }
  }
  return best;
}

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
