// Find the tokens of one word for each kind of model in a `tokenizer.json`, as the tokenizers library does.

// Whole words: any other word is `<unk>`.
class Words {
  constructor({ vocab, unk_token: unknown }) {
    this.words = new Set(Object.keys(vocab));
    this.unknown = unknown;
  }

  segment(word) {
    return [this.words.has(word) || !this.words.has(this.unknown) ? word : this.unknown];
  }
}

// BPE: merge the pair with the lowest rank, the leftmost of equal ones, until no pair can be merged.
class Merges {
  constructor({ vocab, merges, end_of_word_suffix: end, byte_fallback: bytes, fuse_unk: fuse, unk_token: unknown }) {
    Object.assign(this, { end: end || "", bytes, fuse, unknown });
    this.symbols = new Set(Object.keys(vocab));
    this.ranks = new Map(merges.map(([left, right], rank) => [pairKey(left, right), rank]));
  }

  segment(word) {
    const symbols = [...word];
    symbols[symbols.length - 1] += this.end;
    const rankOf = (i) => this.ranks.get(pairKey(symbols[i], symbols[i + 1])) ?? Infinity;
    const ranks = symbols.slice(1).map((_, i) => rankOf(i)); // of each symbol and the next
    for (;;) {
      let best = 0;
      for (let i = 1; i < ranks.length; i++) if (ranks[i] < ranks[best]) best = i;
      if (!(ranks[best] < Infinity)) break;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
      ranks.splice(best, 1);
      if (best > 0) ranks[best - 1] = rankOf(best - 1);
      if (best < ranks.length) ranks[best] = rankOf(best);
    }
    const tokens = symbols.flatMap((symbol) => {
      if (this.symbols.has(symbol)) return [symbol];
      return (this.bytes && byteTokens(symbol, this.symbols)) || [this.symbols.has(this.unknown) ? null : symbol];
    });
    const kept = this.fuse ? tokens.filter((token, i) => token !== null || tokens[i - 1] !== null) : tokens;
    return kept.map((token) => token ?? this.unknown);
  }
}

// Unigram: find the segmentation with the highest score; of equal ones, the one whose last piece is the longest.
class Unigram {
  constructor({ vocab, unk_id: unknown, byte_fallback: bytes }) {
    this.bytes = bytes;
    this.scores = new Map(vocab);
    this.unknown = vocab[unknown]?.[0];
    this.below = vocab.reduce((lowest, [, score]) => Math.min(lowest, score), Infinity) - 10; // of an unknown character
    this.longest = vocab.reduce((most, [piece]) => Math.max(most, piece.length), 1);
  }

  segment(word) {
    const letters = [...word];
    const best = [{ total: 0 }]; // for each end of a piece: { total, start, known }
    for (let start = 0; start < letters.length; start++) {
      let piece = "";
      for (let end = start + 1; end <= letters.length && piece.length < this.longest; end++) {
        piece += letters[end - 1];
        const score = this.scores.get(piece);
        if (score === undefined && end > start + 1) continue;
        const total = (score ?? this.below) + best[start].total;
        if (!best[end] || total > best[end].total) {
          best[end] = { total, start, known: score !== undefined && piece !== this.unknown };
        }
      }
    }
    const pieces = [];
    for (let end = letters.length; end > 0; end = best[end].start) {
      const { start, known } = best[end];
      const text = letters.slice(start, end).join("");
      if (!known && pieces[0]?.known === false) pieces[0].text = text + pieces[0].text; // unknown neighbours are one
      else pieces.unshift({ text, known });
    }
    return pieces.flatMap(({ text }) => {
      if (this.scores.has(text)) return [text];
      return (this.bytes && byteTokens(text, this.scores)) || [text];
    });
  }
}

const MODELS = { WordLevel: Words, BPE: Merges, Unigram };

// Return the tokens for the bytes of a text, or null if some of them are not in the vocabulary.
function byteTokens(text, vocabulary) {
  const names = utf8(text).map((byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  return names.every((name) => vocabulary.has(name)) ? names : null;
}

function pairKey(left, right) {
  return `${left.length} ${left}${right}`;
}
