// Split a text into sentences, and find the text before, between and after their translations; see text/sentences.py.
// RULES has the patterns of Python. The exporter has asked Python's library after which words a full stop ends no
// sentence.

const blankBetween = (language) => (RULES.unspaced.includes(primaryLanguage(language)) ? "" : " ");
const primaryLanguage = (tag) => tag.toLowerCase().split(/[-_]/)[0];

// The exporter's data on the languages of a bundle, ready for use. The first is the language of the sources, the others
// vote.
function makeSplitting({ signs, goesOn, exceptions, weak, starters, followers, slashes, ...others }) {
  const [language, ...voters] = signs.map((one, bit) => ({
    signs: new RegExp(`[${one.replace(/[\]\\^-]/g, "\\$&")}]+`, "gu"),
    goesOn: new RegExp(goesOn[bit], "u"),
    wordBefore: slashes[bit] ? /[^\s/]*$/ : /\S*$/,
    weak: new Set(weak[bit]),
    starters: new Set(starters[bit]),
    followers: new Set(followers[bit]),
    exceptions: { has: (word) => Object.hasOwn(exceptions, word) && (exceptions[word] >> bit) % 2 === 1 },
  }));
  return { ...others, language, voters };
}

// `languages` are the tags of source and target, or "" if unknown. With `split` off, the text is one sentence.
function splitText(text, splitting) {
  const spans = splitting.split ? sentenceSpans(text, splitting) : wholeSpan(text);
  const [, target] = splitting.languages;
  if (!spans.length) return { sentences: [], gaps: [text] };
  const between = spans.slice(1).map(([start], i) => gapBetween(text.slice(spans[i][1], start), target));
  return {
    sentences: spans.map(([start, end]) => text.slice(start, end)),
    gaps: [text.slice(0, spans[0][0]), ...between, text.slice(spans.at(-1)[1])],
  };
}

function gapBetween(gap, language) {
  if (gap.replace(/[ \u3000]/g, "") || !primaryLanguage(language)) return gap;
  const blank = blankBetween(language);
  return blank && (gap.replaceAll("\u3000", blank) || blank);
}

const wholeSpan = (text) => (text.trim() ? [[text.length - text.trimStart().length, text.trimEnd().length]] : []);

// A line break ends a sentence. An end inside a copied span does not count.
function sentenceSpans(text, splitting) {
  return [...text.matchAll(/[^\r\n]+/g)].flatMap(({ 0: line, index }) => {
    let start = index;
    return cut(line, () => true, splitting, findSpans(line, RULES.kinds)).map((sentence) => {
      const first = text.indexOf(sentence, start);
      start = first + sentence.length;
      return [first, start];
    });
  });
}

// Cut a text into parts that fit: sentences, or the clauses of a long sentence, or the words of a long clause.
function cut(text, fits, splitting, whole) {
  const isInside = insideOf(whole, text.length);
  const parts = ([start, end], ends) => {
    const places = [start, ...ends.filter((place) => place > start && place < end && !isInside[place]), end];
    return places.slice(1).map((place, i) => [places[i], place]);
  };
  const suits = (start, end) => fits(text.slice(start, end).trim());
  const endsOf = (pattern) => [...text.matchAll(pattern)].map((match) => match.index + match[0].length);
  const sentences = parts([0, text.length], sentenceEnds(text, splitting));
  const pieces = sentences.flatMap((sentence) => {
    if (suits(...sentence)) return [sentence];
    const clauses = parts(sentence, endsOf(RULES.clauseEnds));
    const words = clauses.flatMap((clause) => (suits(...clause) ? [clause] : parts(clause, endsOf(RULES.blanks))));
    const joined = words.slice(0, 1);
    for (const [start, end] of words.slice(1)) {
      if (suits(joined.at(-1)[0], end)) joined.at(-1)[1] = end;
      else joined.push([start, end]);
    }
    return joined;
  });
  return pieces.map(([start, end]) => text.slice(start, end).trim()).filter(Boolean);
}

// Return, for each position in a text of this length, whether it is inside one of some spans, which do not overlap.
function insideOf(spans, length) {
  const inside = new Uint8Array(length + 1);
  for (const { start, end } of spans) inside.fill(1, start + 1, end);
  return inside;
}

function sentenceEnds(text, { language, voters, ordinals, isKnown }) {
  text = text.replace(RULES.otherBlanks, " ");
  const isInside = (end) => {
    const before = text.slice(Math.max(0, end - 12), end);
    if (end < text.length && RULES.shortWord.test(before) && matchAt(RULES.number, text, end)) return true;
    if (!/^\p{L}/u.test(text.slice(end, end + 2))) return false;
    const initial = RULES.initial.exec(before);
    return (initial && /\p{Lu}/u.test(initial[1])) || (ordinals && RULES.ordinal.test(before));
  };
  const votes = (end) => {
    const before = RULES.wordBefore.exec(text.slice(Math.max(0, end - 44), end));
    const after = matchAt(RULES.wordAfter, text, end);
    if (!before || !after) return 0;
    return voters.filter((voter) => endsOf(`${before[0].trim()} ${after[0]}`, voter).length < 2).length;
  };
  const most = isKnown ? RULES.votes : RULES.votesIfUnknown;
  return windowEnds(text, language).filter((end) => !isInside(end) && votes(end) < most);
}

// Find the ends of a long text's sentences, one window of characters at a time. The last end is only that of the
// window, and an end close to it may be an abbreviation.
function windowEnds(text, language) {
  const characters = [...text];
  const ends = [];
  for (let [first, start] = [0, 0]; ; ) {
    const read = characters.slice(first, first + RULES.window);
    const window = read.join("");
    const found = endsOf(window, language);
    if (first + read.length === characters.length) return [...ends, ...found.map((end) => start + end)];
    const most = read.slice(0, Math.floor((RULES.window * 3) / 4)).join("").length;
    const inner = found.filter((end) => end <= most);
    ends.push(...inner.map((end) => start + end));
    const next = inner.at(-1) ?? (window.slice(0, most).lastIndexOf(" ") + 1 || window.length);
    first += [...window.slice(0, next)].length;
    start += next;
  }
}

// Find the ends of sentences as Python's library sees them in one of its languages, and the end of the text: after
// `signs`, unless the sentence `goesOn` or a word of `exceptions` precedes them, and not inside quotation marks and
// brackets.
function endsOf(text, { signs, goesOn, exceptions, wordBefore, weak, starters, followers }) {
  const ends = [];
  const skipped = RULES.quoted.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]));
  const wordAfter = (index) => /^\s*(\p{L}*)/u.exec(text.slice(index + 1))[1];
  // In English, the word after "Jan." may show that the sentence has ended.
  const startsAnew = (sign, index) => {
    return starters.has(wordAfter(index)) && weak.has(wordBefore.exec(text.slice(Math.max(0, index - 40), index))[0] + sign);
  };
  // Blanks, and the quotation mark that closes a quotation.
  const quoteAfter = (place) => {
    const [blanks, mark] = /^\s*([^]?)/.exec(text.slice(place));
    const first = place + blanks.length - mark.length;
    const closes = mark !== "" && RULES.quotes.includes(mark) && !skipped.some(([start]) => start === first);
    return closes ? first + 1 - place + /^\s*/.exec(text.slice(first + 1))[0].length : first - place;
  };
  // The sign belongs to a word such as "Dr.", or is any full stop in "z.B." or "e.g.".
  const isInException = (sign, index) => {
    const run = wordBefore.exec(text.slice(Math.max(0, index - 40), index))[0];
    if (exceptions.has(run.split(".").at(-1) + sign)) return true;
    const rest = /^[^\s.]*(?:\.[^\s.]+)*\./.exec(text.slice(index + 1, index + 40))?.[0] ?? "";
    const parts = rest.split(".").slice(0, -1);
    return sign === "." && run !== "" && [...parts, ""].some((_, i) => exceptions.has(`${[run, ...parts.slice(0, i)].join(".")}.`));
  };
  for (const { 0: sign, index } of text.matchAll(signs)) {
    const tail = text.slice(index + 1);
    const reference = /^(?:\s*\[\d+\])+/.exec(tail);
    if (!reference && ((sign.length > 1 ? /^[.!?]*\s*[0-9a-z]/ : goesOn).test(tail) || followers.has(wordAfter(index)) || (isInException(sign, index) && !startsAnew(sign, index)))) continue;
    if (reference) {
      ends.push(index + 1 + reference[0].length);
      continue;
    }
    const behind = index + sign.length;
    const end = behind + quoteAfter(behind);
    const isQuotation = skipped.some(([, stop]) => stop === behind + 1);
    if (!isQuotation || !/^[^\p{L}\p{N}_]*[0-9a-z]/u.test(text.slice(end))) ends.push(end);
  }
  const kept = ends.flatMap((end) => {
    const around = skipped.filter(([start, stop]) => start < end && end < stop);
    if (!around.length) return [end];
    const [, stop] = around[0];
    return end + 1 === stop && RULES.quotes.includes(text[end]) ? [stop] : [];
  });
  return kept.at(-1) === text.length ? kept : [...kept, text.length];
}

function matchAt(pattern, text, start) {
  pattern.lastIndex = start;
  return pattern.exec(text);
}
