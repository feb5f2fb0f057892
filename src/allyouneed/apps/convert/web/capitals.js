// Texts in capitals, and how to write them in letters that the model knows; see text/letter_case.py.

class Capitals {
  constructor({ sources, in_capitals: inCapitals, contradicted, begin_with_capital: beginning, capitalized }) {
    const isContradicted = contradicted >= RULES.seen && 2 * contradicted > inCapitals;
    this.areRare = inCapitals < RULES.rareCapitals * sources && !isContradicted;
    this.beginsWithCapital = 2 * beginning >= sources;
    this.usual = new Map(capitalized.map((word) => [word.toLowerCase(), word]));
  }

  isUnusual(text) {
    if (!this.areRare) return false;
    const letters = partsOf(text).filter(({ isSpan }) => !isSpan).map(({ part }) => part).join("");
    return !/\p{Lowercase}/u.test(letters) && (letters.match(/\p{Uppercase}/gu) ?? []).length >= RULES.fewestCapitals;
  }

  // Write a text in small letters, except words that usually have capitals. Each sentence begins with a capital if most
  // sentences in training do.
  toSentenceCase(text) {
    const lower = (word) => this.usual.get(word.toLowerCase()) ?? word.toLowerCase();
    const parts = partsOf(text).map(({ part, isSpan }) => ({ part: isSpan ? part : part.replace(RULES.word, lower), isSpan }));
    const small = parts.map(({ part }) => part).join("");
    if (!this.beginsWithCapital) return small;
    const outside = parts.map(({ part, isSpan }) => (isSpan ? " ".repeat(part.length) : part)).join("");
    const beginnings = [...outside.matchAll(RULES.beginnings)].map((match) => match.index + match[0].length - match[1].length);
    let [made, end] = ["", 0];
    for (const start of beginnings) {
      const letter = String.fromCodePoint(small.codePointAt(start));
      made += small.slice(end, start) + letter.toUpperCase();
      end = start + letter.length;
    }
    return made + small.slice(end);
  }
}

const toCapitals = (text) => partsOf(text).map(({ part, isSpan }) => (isSpan ? part : part.toUpperCase())).join("");

// Return the parts of a text, each with true if it is a span that stays unchanged.
function partsOf(text) {
  const parts = [];
  let end = 0;
  for (const span of findSpans(text, RULES.kept)) {
    parts.push({ part: text.slice(end, span.start), isSpan: false }, { part: span.text, isSpan: true });
    end = span.end;
  }
  return [...parts, { part: text.slice(end), isSpan: false }];
}
