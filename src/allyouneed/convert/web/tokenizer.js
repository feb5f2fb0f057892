// Text ↔ ids, from the `tokenizer.json` that the model was trained with: letters, words, BPE, given merges or unigram.

class Tokenizer {
  constructor(file, normalization) {
    this.normalization = normalization;
    this.model = file.model;
    this.prefix = file.normalizer ? file.normalizer.prepend : "";
    const splits = flatten(file.pre_tokenizer, "pretokenizers");
    this.bytes = splits.some((part) => part.type === "ByteLevel");
    this.splits = splits.filter((part) => part.type === "Split");
    this.decoders = flatten(file.decoder, "decoders");
    if (this.model.type === "Unigram") {
      this.scores = new Map(this.model.vocab.map(([piece, score], id) => [piece, { score, id }]));
      this.ids = new Map(this.model.vocab.map(([piece], id) => [piece, id]));
    } else {
      this.ids = new Map(Object.entries(this.model.vocab));
    }
    for (const { content, id } of file.added_tokens) this.ids.set(content, id);
    this.names = [];
    for (const [name, id] of this.ids) this.names[id] = name;
    this.ranks = new Map((this.model.merges || []).map((pair, rank) => [[].concat(pair).join(" "), rank]));
    [this.sos, this.eos, this.pad] = ["<sos>", "<eos>", "<pad>"].map((name) => this.ids.get(name));
    this.unk = this.ids.get("<unk>");
  }

  // Ids with <sos> and <eos>. A character that the vocabulary cannot spell raises an Error that names it.
  encode(text) {
    const ids = this.split(this.normalize(text)).flatMap((word) => this.encodeWord(word));
    return [this.sos, ...ids.map((id) => (this.unk === undefined ? id : Math.min(id, this.unk))), this.eos];
  }

  normalize(text) {
    const { unicode, strip_control: strip } = this.normalization;
    if (strip) {
      text = text.replace(/[\t\n\v\f\r\x85\u2028\u2029]+/g, " ").replace(/[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]/g, "");
    }
    return unicode === "none" ? text : text.normalize(unicode);
  }

  split(text) {
    let words = text ? [this.prefix + text] : [];
    for (const { pattern, behavior } of this.splits) {
      if (behavior === "Removed") words = words.flatMap((word) => word.split(pattern.String)).filter(Boolean);
      else words = words.flatMap((word) => word.match(new RegExp(pattern.Regex, "gu")) || []);
    }
    return this.bytes ? words.map((word) => utf8(word).map((byte) => BYTE_LETTERS[byte]).join("")) : words;
  }

  encodeWord(word) {
    if (this.model.type === "Unigram") return this.viterbi(word);
    if (this.model.type === "WordLevel") return [this.idOf(word)];
    return this.merge(word);
  }

  // BPE: merge the pair of the lowest rank until no pair is known.
  merge(word) {
    let symbols = [...word];
    const end = this.model.end_of_word_suffix;
    if (end) symbols[symbols.length - 1] += end;
    for (;;) {
      let best = Infinity;
      for (let i = 0; i + 1 < symbols.length; i++) {
        best = Math.min(best, this.ranks.get(`${symbols[i]} ${symbols[i + 1]}`) ?? Infinity);
      }
      if (best === Infinity) break;
      const merged = [];
      for (let i = 0; i < symbols.length; i++) {
        const pair = this.ranks.get(`${symbols[i]} ${symbols[i + 1]}`) === best;
        merged.push(pair ? symbols[i] + symbols[++i] : symbols[i]);
      }
      symbols = merged;
    }
    return symbols.flatMap((symbol) => (this.model.byte_fallback ? this.orBytes(symbol) : [this.idOf(symbol)]));
  }

  // Unigram: the segmentation of the highest total score. What no piece covers is spelled as bytes.
  viterbi(word) {
    const letters = [...word];
    const best = [{ total: 0 }];
    const unknown = Math.min(...this.model.vocab.map(([, score]) => score)) - 10;
    for (let end = 1; end <= letters.length; end++) {
      for (let start = end - 1; start >= 0; start--) {
        const piece = this.scores.get(letters.slice(start, end).join(""));
        if (!piece && start < end - 1) continue;
        const total = best[start].total + (piece ? piece.score : unknown);
        if (!best[end] || total > best[end].total) best[end] = { total, start, known: Boolean(piece) };
      }
    }
    const ids = [];
    for (let end = letters.length; end > 0; end = best[end].start) {
      const text = letters.slice(best[end].start, end).join("");
      ids.unshift(...(best[end].known ? [this.ids.get(text)] : this.orBytes(text)));
    }
    return ids;
  }

  orBytes(symbol) {
    if (this.ids.has(symbol)) return [this.ids.get(symbol)];
    return utf8(symbol).map((byte) => this.ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`));
  }

  idOf(symbol) {
    const id = this.ids.get(symbol) ?? this.unk;
    if (id === undefined) throw new Error(`“${symbol}” is not in the vocabulary`);
    return id;
  }

  // The text of ids, without special tokens.
  decode(ids) {
    const special = new Set([this.sos, this.eos, this.pad]);
    let tokens = ids.filter((id) => !special.has(id)).map((id) => this.names[id]);
    for (const decoder of this.decoders) tokens = DECODERS[decoder.type](tokens, decoder);
    return tokens.join("");
  }

  // A token as a reader would write it; a blank is shown as ␣.
  piece(id) {
    const name = this.names[id];
    if ([this.sos, this.eos, this.pad, this.unk].includes(id)) return name;
    if (this.model.end_of_word_suffix) return name.replace(this.model.end_of_word_suffix, "␣");
    return (this.bytes ? DECODERS.ByteLevel([name])[0] : name).replaceAll(" ", "␣");
  }
}

const DECODERS = {
  Fuse: (tokens) => [tokens.join("")],
  Strip: (tokens, { content, start }) =>
    tokens.map((token) => {
      for (let i = 0; i < start && token.startsWith(content); i++) token = token.slice(content.length);
      return token;
    }),
  BPEDecoder: (tokens, { suffix }) =>
    tokens.map((token, i) => token.replace(suffix, i + 1 < tokens.length ? " " : "")),
  ByteLevel: (tokens) => [fromUtf8([...tokens.join("")].map((letter) => BYTE_LETTERS.indexOf(letter)))],
  ByteFallback: (tokens) => {
    const texts = [];
    let bytes = [];
    const flush = () => {
      const text = fromUtf8(bytes);
      texts.push(utf8(text).join() === bytes.join() ? text : "\ufffd".repeat(bytes.length));
      bytes = [];
    };
    for (const token of tokens) {
      const byte = /^<0x([0-9A-F]{2})>$/.exec(token);
      if (byte) bytes.push(parseInt(byte[1], 16));
      else {
        if (bytes.length) flush();
        texts.push(token);
      }
    }
    if (bytes.length) flush();
    return texts;
  },
};

// The letter that byte-level BPE writes for each byte: the byte's own where it is printable, else one from U+0100 on.
const BYTE_LETTERS = (() => {
  const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();

function flatten(part, inner) {
  if (!part) return [];
  return part.type === "Sequence" ? part[inner].flatMap((one) => flatten(one, inner)) : [part];
}

function utf8(text) {
  return [...unescape(encodeURIComponent(text.toWellFormed ? text.toWellFormed() : text))].map((c) => c.charCodeAt(0));
}

// Text of bytes; what is no UTF-8 becomes U+FFFD, one for each longest beginning of a character.
function fromUtf8(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const first = bytes[i++];
    const more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : -1;
    let code = more > 0 ? first & (0x3f >> more) : first;
    let low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80; // no longer spelling than needed
    let high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf; // no surrogates, nothing beyond U+10FFFF
    let left = more;
    for (; left > 0 && bytes[i] >= low && bytes[i] <= high; left--) {
      code = (code << 6) | (bytes[i++] & 0x3f);
      [low, high] = [0x80, 0xbf];
    }
    text += left === 0 ? String.fromCodePoint(code) : "\ufffd";
  }
  return text;
}
