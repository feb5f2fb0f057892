// Replace the characters of a text before it is split: the normalizers of a `tokenizer.json`, in order.

const NORMALIZERS = {
  NFC: () => (text) => text.normalize("NFC"),
  NFD: () => (text) => text.normalize("NFD"),
  NFKC: () => (text) => text.normalize("NFKC"),
  NFKD: () => (text) => text.normalize("NFKD"),
  Lowercase: () => (text) => [...text].map((letter) => letter.toLowerCase()).join(""),
  Prepend: ({ prepend }) => (text) => text && prepend + text,
  Replace: (part) => (text) => replacePattern(text, part),
  Strip: ({ strip_left: left, strip_right: right }) => (text) => {
    const start = left ? text.replace(/^\p{White_Space}+/u, "") : text;
    return right ? start.replace(/\p{White_Space}+$/u, "") : start;
  },
  Precompiled: ({ precompiled_charsmap: map }) => {
    const characters = new CharacterMap(decodeBase64(map));
    return (text) => characters.replace(text);
  },
};

// In the tokenizers library, ^ and $ match at the start and the end of a line, which ends with \n.
function replacePattern(text, { pattern, content }) {
  if (pattern.String) return text.split(pattern.String).join(content);
  const expression = toRegExp(pattern.Regex);
  const lines = text.split("\n").map((line) => line.replace(expression, () => content));
  return lines.join("\n");
}

// Compile a pattern of the tokenizers library. Its \s is Unicode's white space; JavaScript's includes U+FEFF and lacks
// U+0085.
function toRegExp(pattern) {
  return new RegExp(pattern.replaceAll("\\s", "\\p{White_Space}").replaceAll("\\S", "\\P{White_Space}"), "gu");
}

// The character map of a SentencePiece model; text/character_map.py describes its bytes.
class CharacterMap {
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const size = view.getUint32(0, true);
    this.units = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
    this.replacements = bytes.subarray(4 + size);
  }

  // Replace the longest key that matches at every position.
  replace(text) {
    const bytes = utf8(text);
    const made = [];
    for (let position = 0; position < bytes.length; ) {
      const { length, replacement } = this.longest(bytes, position) || oneCharacter(bytes, position);
      for (const byte of replacement) made.push(byte);
      position += length;
    }
    return fromUtf8(made);
  }

  longest(bytes, start) {
    const { units, replacements } = this;
    let node = childrenOf(0, units[0]);
    let value = -1;
    let length = 0;
    for (let position = start; position < bytes.length; position++) {
      node ^= bytes[position];
      const unit = units[node];
      if ((unit & 0x800000ff) !== bytes[position] || bytes[position] === 0) break;
      node = childrenOf(node, unit);
      if (unit & 256) [value, length] = [units[node] & 0x7fffffff, position + 1 - start];
    }
    if (!length) return null;
    const end = replacements.indexOf(0, value);
    return { length, replacement: replacements.subarray(value, end < 0 ? replacements.length : end) };
  }
}

function oneCharacter(bytes, start) {
  let end = start + 1;
  while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end++;
  return { length: end - start, replacement: bytes.slice(start, end) };
}

function childrenOf(node, unit) {
  return node ^ ((unit >>> 10) << ((unit & 512) >>> 6));
}

function utf8(text) {
  return [...unescape(encodeURIComponent(text.toWellFormed ? text.toWellFormed() : text))].map((c) => c.charCodeAt(0));
}

// Decode bytes to text. Each longest beginning of an invalid character becomes U+FFFD.
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
