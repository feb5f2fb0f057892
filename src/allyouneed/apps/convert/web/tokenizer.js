// Convert text to ids and back, with the `tokenizer.json` of the model.

const SPECIALS = ["<pad>", "<sos>", "<eos>", "<unk>"];
const LANGUAGE_TAG = /^>>[^<>]+<</; // what a text may begin with, such as >>ita<<
// Scripts that joiners shape, the pictures of emoji, and characters without width; see text/normalize.py.
const SHAPED = String.raw`\u0600-\u061b\u061d-\u0dff\u0f00-\u109f\u1780-\u180d\u180f-\u18af\u1900-\u1cff\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc\u{10a00}-\u{11fff}\u{1e900}-\u{1e95f}`;
const PICTURES = String.raw`\u2190-\u2bff\u{1f000}-\u{1faff}`;
const UNSEEN = new RegExp(
  String.raw`[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|(?<![${SHAPED}])\u200c` +
    String.raw`|(?<![${SHAPED}])(?:(?<![${PICTURES}\ufe0f])\u200d|\u200d(?![${PICTURES}]))`,
  "gu",
);

class Tokenizer {
  constructor(file, normalization) {
    this.normalization = normalization;
    this.normalizers = flatten(file.normalizer, "normalizers").map((part) => NORMALIZERS[part.type](part));
    this.decomposes = file.normalizer?.type === "NFD";
    this.splits = flatten(file.pre_tokenizer, "pretokenizers");
    this.model = new MODELS[file.model.type](file.model);
    this.decoders = file.decoder && flatten(file.decoder, "decoders");
    this.symbols = file.symbols;
    this.ids = new Map(file.symbols ? file.symbols.map((name, id) => [name, id]) : modelIds(file));
    this.names = [];
    for (const [name, id] of this.ids) this.names[id] = name;
    const frame = file.post_processor ? file.post_processor.single : [{ Sequence: {} }];
    const middle = frame.findIndex((part) => part.Sequence);
    [this.before, this.after] = [frame.slice(0, middle), frame.slice(middle + 1)].map((parts) =>
      parts.map((part) => this.ids.get(part.SpecialToken.id)),
    );
    this.suffix = file.model.end_of_word_suffix;
    this.blank = file.symbols || JSON.stringify(file.decoder).includes("▁") ? "▁" : " ";
    this.pad = this.ids.get("<pad>");
    this.special = new Set([this.before[0] ?? this.ids.get("<sos>") ?? this.pad, this.ids.get("<eos>"), this.pad]);
    this.unk = this.ids.get("<unk>");
  }

  // Encode a text, with special tokens. A character that the vocabulary cannot spell raises an Error that names the
  // character.
  encode(text) {
    return this.encodeNormal(this.normalize(text));
  }

  // Encode a text that is already normalized.
  encodeNormal(text) {
    const tag = this.languageTag(text);
    const tags = tag ? [tag] : [];
    const words = this.split(tags.length ? text.slice(tag.length) : text);
    const tokens = [...tags, ...words.flatMap((word) => this.model.segment(word))];
    return [...this.before, ...tokens.map((token) => this.idOf(token)), ...this.after];
  }

  // Return the language tag that a text begins with, if this vocabulary has the tag; otherwise "".
  languageTag(text) {
    const [tag] = (this.symbols && LANGUAGE_TAG.exec(text)) || [""];
    return this.ids.has(tag) ? tag : "";
  }

  canEncode(text) {
    try {
      this.encodeNormal(text);
    } catch {
      return false;
    }
    return true;
  }

  normalize(text) {
    const { unicode, strip_control: strip } = this.normalization;
    if (strip) {
      text = text.replace(/[\t\n\v\f\r\x85\u2028\u2029]+/g, " ").replace(/[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]/g, "");
      text = text.replace(UNSEEN, "");
    }
    return unicode === "none" ? text : text.normalize(unicode);
  }

  split(text) {
    for (const normalize of this.normalizers) text = normalize(text);
    let words = text ? [text] : [];
    for (const part of this.splits) words = words.flatMap((word) => SPLITS[part.type](word, part)).filter(Boolean);
    return words;
  }

  // The name of a special token in a text is plain text, for which `symbols` have no id.
  idOf(token) {
    const id = (this.symbols && SPECIALS.includes(token) ? undefined : this.ids.get(token)) ?? this.unk;
    if (id === undefined) throw new Error(`“${token}” is not in the vocabulary`);
    // In a vocabulary of merges, all ids after <unk> stand for <unk>.
    return this.suffix && !this.symbols && this.unk !== undefined ? Math.min(id, this.unk) : id;
  }

  // Decode ids to text, without special tokens.
  decode(ids) {
    let tokens = ids.filter((id) => !this.special.has(id)).map((id) => this.names[id]);
    if (this.symbols) return tokens.join("").replaceAll("▁", " ").replace(/^ +| +$/g, "");
    if (!this.decoders) return tokens.join(" ");
    for (const decoder of this.decoders) tokens = DECODERS[decoder.type](tokens, decoder);
    return this.composed(tokens.join(""));
  }

  // Compose the characters that this vocabulary decomposes.
  composed(text) {
    return this.decomposes ? text.normalize("NFC") : text;
  }

  // List the characters of a text that a vocabulary of characters reads as <unk>.
  unknownCharacters(text) {
    return this.split(text).filter((token) => [...token].length === 1 && this.encodeNormal(token).includes(this.unk));
  }

  // Return a token in readable form, with ␣ for a blank.
  piece(id) {
    const name = this.names[id];
    if (SPECIALS.includes(name)) return name;
    if (this.suffix) return name.replaceAll(this.suffix, "␣");
    const inBytes = this.decoders?.some((part) => part.type === "ByteLevel");
    return (inBytes ? DECODERS.ByteLevel([name])[0] : name).replaceAll(this.blank, "␣");
  }
}

// The ids of the model's tokens, and of tokens that were added.
function modelIds({ model, added_tokens: added }) {
  const ids = model.type === "Unigram" ? model.vocab.map(([piece], id) => [piece, id]) : Object.entries(model.vocab);
  return [...ids, ...added.map(({ content, id }) => [content, id])];
}

const SPLITS = {
  Split: (word, { pattern, behavior }) => {
    if (behavior === "Removed") return word.split(pattern.String);
    if (behavior === "Isolated") return word.match(toRegExp(pattern.Regex)) || [];
    return word.match(new RegExp(`[^]*?(?:${pattern.Regex})|[^]+`, "gu")) || []; // MergedWithPrevious
  },
  ByteLevel: (word) => [utf8(word).map((byte) => BYTE_LETTERS[byte]).join("")],
  Metaspace: (word, { replacement, prepend_scheme: scheme, split }) => {
    let text = word.replaceAll(" ", replacement);
    if (scheme !== "never" && !text.startsWith(replacement)) text = replacement + text;
    return split ? text.split(new RegExp(`(?=${replacement})`, "u")) : [text];
  },
};

const DECODERS = {
  Fuse: (tokens) => [tokens.join("")],
  Strip: (tokens, { content, start }) =>
    tokens.map((token) => {
      for (let i = 0; i < start && token.startsWith(content); i++) token = token.slice(content.length);
      return token;
    }),
  Replace: (tokens, part) => tokens.map((token) => replacePattern(token, part)),
  Metaspace: (tokens, { replacement, prepend_scheme: scheme }) =>
    tokens.map((token, i) => token.replaceAll(replacement, i === 0 && scheme !== "never" ? "" : " ")),
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

// The letter that byte-level BPE writes for each byte: the byte's own character if it is printable, otherwise one from
// U+0100 on.
const BYTE_LETTERS = (() => {
  const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();

function flatten(part, inner) {
  if (!part) return [];
  return part.type === "Sequence" ? part[inner].flatMap((one) => flatten(one, inner)) : [part];
}
