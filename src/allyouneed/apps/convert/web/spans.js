// Spans that are copied, statistics of them in the training pairs, and checks that a translation has them; see
// text/spans.py and translator/constraints.py, which also have the patterns.

const RULES = Object.fromEntries(
  Object.entries(RULES_OF_PYTHON).map(([name, value]) => [name, name === "spans" ? value : asPattern(value)]),
);

// Compile a pair of an expression and its flags, or several pairs; return any other value unchanged.
function asPattern(value) {
  const isPair = (one) => Array.isArray(one) && one.length === 2 && /^g?uy?$/.test(one[1]);
  if (isPair(value)) return new RegExp(...value);
  return Array.isArray(value) && value.length && value.every(isPair) ? value.map(asPattern) : value;
}

const reader = (() => {
  const readers = new Map();
  return (kinds) => {
    const name = kinds.join();
    if (!readers.has(name)) {
      const sources = RULES.spans.filter(([kind]) => kinds.includes(kind));
      const patterns = sources.map(([kind, [source]]) => [kind, new RegExp(source, "uy")]);
      const anywhere = new RegExp(sources.map(([, [source]]) => `(?:${source})`).join("|"), "gu");
      readers.set(name, { patterns, anywhere });
    }
    return readers.get(name);
  };
})();

// Find the spans of some kinds, { kind, text, start, end }. If several begin at the same place, the longest counts.
function findSpans(text, kinds) {
  if (!kinds.length) return [];
  const { patterns, anywhere } = reader(kinds);
  const found = [];
  for (let end = 0; ; ) {
    const match = matchAt(anywhere, text, end);
    if (!match) return found;
    const start = match.index;
    let best = { end: -1 };
    for (const [kind, pattern] of patterns) {
      const one = matchAt(pattern, text, start);
      if (one && start + one[0].length > best.end) best = { kind, text: one[0], start, end: start + one[0].length };
    }
    found.push(best);
    end = best.end;
  }
}

// Return the kind of a text that needs no translation: "urls", "emails", "numbers" or "signs"; otherwise null.
function untranslatable(text) {
  if (!text.trim()) return null;
  const spans = findSpans(text, ["urls", "emails"]);
  if (spans.length === 1 && spans[0].text === text.trim()) return spans[0].kind;
  if (/\p{L}/u.test(text)) return null;
  return /\p{N}/u.test(text) ? "numbers" : "signs";
}

class Copies {
  constructor({ alone, inside, signs }) {
    Object.assign(this, { alone, inside, known: new Set(signs) });
  }

  // Return true if a text needs no translation and is of a kind that the training pairs often copied.
  isCopied(text) {
    const kind = untranslatable(text);
    if (kind === null) return false;
    const all = [...Object.values(this.alone), ...Object.values(this.inside)];
    const sum = (name) => all.reduce((total, part) => total + part[name], 0);
    const judges = [
      [this.alone[kind], RULES.nearlyAlways],
      [this.inside[kind], RULES.often],
      [{ seen: sum("seen"), same: sum("same") }, RULES.often],
    ];
    const judge = judges.find(([part]) => part && part.seen >= RULES.enough);
    return Boolean(judge) && judge[0].same >= judge[1] * judge[0].seen;
  }

  // Return true if some training pair translated a whole source of the same kind as `text` differently.
  isContradicted(text) {
    const part = this.alone[untranslatable(text)];
    return Boolean(part) && part.same < part.seen;
  }

  // Find the runs between blanks that contain an unknown sign, outside of copied spans and amounts.
  foreignRuns(text) {
    if (!this.known.size) return [];
    const isForeign = (character) => /[\p{P}\p{S}\p{Co}]/u.test(character) && !this.known.has(character);
    const amounts = [...text.matchAll(RULES.amount)].map(({ 0: amount, index: start }) => ({ start, end: start + amount.length }));
    const rest = blanked(blanked(text, findSpans(text, RULES.apart), "a"), amounts, "a");
    const runs = [...rest.matchAll(/\S+/g)].filter(([run]) => [...run].some(isForeign));
    return runs.map(({ 0: run, index }) => stripped(text.slice(index, index + run.length), RULES.around));
  }
}

function stripped(text, signs) {
  let start = 0;
  while (start < text.length && signs.includes(text[start])) start++;
  return strippedAtEnd(text.slice(start), signs);
}

function strippedAtEnd(text, signs) {
  let end = text.length;
  while (end && signs.includes(text[end - 1])) end--;
  return text.slice(0, end);
}

// Replace each character in these places, which must not overlap, with a sign.
function blanked(text, places, sign) {
  let position = 0;
  const parts = places.map(({ start, end }) => {
    const part = text.slice(position, start) + sign.repeat(end - start);
    position = end;
    return part;
  });
  return parts.join("") + text.slice(position);
}

// Count how often each of some strings occurs.
function countOf(strings) {
  const counts = new Map();
  for (const one of strings) counts.set(one, (counts.get(one) ?? 0) + 1);
  return counts;
}

const isMissing = (required, present) => [...required].some(([one, count]) => count > (present.get(one) ?? 0));

// Return true if the spans of a target differ from the source's, or are in an order that breaks them.
function spansDiffer(source, target, kinds) {
  const [there, here] = [source, target].map((text) => countOf(findSpans(text, kinds).map((one) => `${one.kind} ${one.text}`)));
  if (isMissing(there, here) || extraSpans(source, target, kinds).length) return true;
  const [wanted, found] = [orderedSpans(source, kinds), orderedSpans(target, kinds)];
  const wrongTags = isNested(wanted.tags) ? !isNested(found.tags) : wanted.tags.join("\n") !== found.tags.join("\n");
  return wrongTags || wanted.byPlace.join("\n") !== found.byPlace.join("\n");
}

// Return true if a target lost a number or a code word of its source, or differs in the count of a code sign.
function codesDiffer(source, target) {
  const codes = [...source.matchAll(RULES.codeRun)].map(([run]) => strippedAtEnd(run, RULES.around));
  if (runsAreLost([...codes, ...signedRuns(source)], source, target)) return true;
  if ([...RULES.codeSigns].some((sign) => timesIn(source, sign) !== timesIn(target, sign))) return true;
  const [numbers, targetNumbers] = [source, target].map(numberParts);
  const isLost = (read) => isMissing(countOf(numbers.flatMap(read)), countOf(targetNumbers.flatMap(read)));
  return isLost((parts) => [parts.join("")]) && isLost((parts) => parts);
}

const timesIn = (text, part) => text.split(part).length;

// Return true if a target has one of some runs of its source less often, ignoring blanks and the width of signs.
function runsAreLost(runs, source, target) {
  const squeezed = (text) => text.normalize("NFKC").replace(/\s+/g, "");
  const [from, to] = [source, target].map(squeezed);
  return runs.map(squeezed).some((run) => timesIn(from, run) > timesIn(to, run));
}

// Return whether letters are directly before and after a place. The underscore is not a letter.
const isInWord = (letter) => letter !== "_" && RULES.inWord.test(letter);
const touchesBefore = (text, start) => start > 0 && isInWord([...text.slice(Math.max(0, start - 2), start)].at(-1));
const touchesAfter = (text, end) => end < text.length && isInWord(String.fromCodePoint(text.codePointAt(end)));

// Find the runs of copied spans and signs without a word in between; see translator/placeholders.py.
function signedRuns(text) {
  const masked = blanked(text, findSpans(text, RULES.apart), "\0");
  return [...masked.matchAll(RULES.signsAndSpans)].filter(([run]) => run.includes("\0")).flatMap(({ 0: whole, index }) => {
    let run = whole;
    if (touchesBefore(text, index)) run = run.slice(run.indexOf("\0"));
    if (touchesAfter(text, index + whole.length)) run = run.slice(0, run.lastIndexOf("\0") + 1);
    const inner = withoutEdges(run);
    const start = index + whole.indexOf(run) + run.indexOf(inner);
    return stripped(inner, "\0") ? [text.slice(start, start + inner.length)] : [];
  });
}

function withoutEdges(run) {
  const surplus = new Map(); // how many of these signs have no partner
  for (const [opening, closing] of RULES.brackets) {
    const difference = timesIn(run, opening) - timesIn(run, closing);
    surplus.set(opening, difference).set(closing, -difference);
  }
  const isEdge = (sign, side) => {
    const isSurplus = RULES.brackets.some((pair) => pair[side] === sign) && surplus.get(sign) > 0;
    if (isSurplus) surplus.set(sign, surplus.get(sign) - 1);
    return isSurplus || RULES.edges.includes(sign);
  };
  let [start, end] = [0, run.length];
  while (start < end && isEdge(run[start], 0)) start++;
  while (start < end && isEdge(run[end - 1], 1)) end--;
  return run.slice(start, end);
}

// Return the placeholders, each with whether a word is directly before and after it. Before it, the end of a clause
// counts too, and so does another placeholder.
function touchedSides(text) {
  let before = 0;
  return findSpans(text, ["placeholders"]).map((span) => {
    const { start, end } = span;
    const follows = start > 0 && (start === before || touchesBefore(text, start) || ".,;:!?".includes(text[start - 1]));
    before = end;
    return { ...span, sides: [follows, touchesAfter(text, end)] };
  });
}

// Insert blanks around a placeholder of the source that ran into a word of the translation.
function freed(wanted, text) {
  const names = wanted.map((span) => span.text);
  const found = findSpans(text, ["placeholders"]).filter((span) => names.includes(span.text));
  const missing = countOf(names);
  for (const span of found) missing.set(span.text, missing.get(span.text) - 1);
  let rest = blanked(text, found, "\n");
  const places = [];
  for (const [name, count] of [...missing].sort(([a], [b]) => [...b].length - [...a].length)) {
    for (let left = count; left > 0 && rest.includes(name); left--) {
      const place = { start: rest.indexOf(name), end: rest.indexOf(name) + name.length };
      places.push(place);
      rest = blanked(rest, [place], "\n");
    }
  }
  const isOfWord = (character) => /[\p{L}\p{N}_]/u.test(character);
  let position = 0;
  const parts = places.sort((a, b) => a.start - b.start).map(({ start, end }) => {
    const before = isOfWord([...text.slice(Math.max(0, start - 2), start)].at(-1) ?? "") ? " " : "";
    const after = isOfWord(text.slice(end) && String.fromCodePoint(text.codePointAt(end))) ? " " : "";
    const part = text.slice(position, start) + before + text.slice(start, end) + after;
    position = end;
    return part;
  });
  return parts.join("") + text.slice(position);
}

// Insert a blank where a placeholder touches a word, unless it also does in the source.
function separatePlaceholders(source, text) {
  const there = touchedSides(source);
  text = freed(there, text);
  let position = 0;
  const parts = touchedSides(text).map(({ text: span, start, end, sides }) => {
    const same = there.filter((one) => one.text === span);
    const gaps = sides.map((touches, side) => (same.length && touches && !same.some((one) => one.sides[side]) ? " " : ""));
    const part = text.slice(position, start) + gaps[0] + span + gaps[1];
    position = end;
    return part;
  });
  return parts.join("") + text.slice(position);
}

// Find the numbers outside other spans, in ASCII digits, divided at their separators.
function numberParts(text) {
  const numbers = findSpans(text, RULES.kinds).filter(({ kind }) => kind === "numbers");
  return numbers.map((span) => span.text.match(/\p{Nd}+/gu).map((part) => [...part].map(figureOf).join("")));
}

// Return the value of a decimal digit. The ten digits of a script have consecutive codes, starting with 0.
function figureOf(digit) {
  let before = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(digit.codePointAt(0) - before - 1))) before++;
  return before % 10;
}

// Find the places in a target of spans, and of signs of the source's placeholders, that the source does not have as
// often.
function extraSpans(source, target, kinds) {
  const left = countOf([...findSpans(source, kinds).map((one) => one.text), ...straySigns(source, kinds).map((one) => one.text)]);
  const signs = spanSigns(source, kinds);
  const stray = straySigns(target, kinds).filter((one) => signs.has(one.text));
  return [...findSpans(target, kinds), ...stray].filter(({ text }) => {
    left.set(text, (left.get(text) ?? 0) - 1);
    return left.get(text) < 0;
  });
}

function spanSigns(text, kinds) {
  const spans = findSpans(text, kinds).filter(({ kind }) => RULES.ofSigns.includes(kind));
  return new Set(spans.flatMap((span) => [...span.text].filter((sign) => RULES.signs.includes(sign))));
}

function straySigns(text, kinds) {
  const isInside = insideOf(findSpans(text, kinds).map(({ start, end }) => ({ start: start - 1, end })), text.length);
  return [...text.matchAll(/[%{}<>]/g)].filter(({ index }) => !isInside[index]).map((match) => ({ text: match[0], start: match.index, end: match.index + 1 }));
}

// Find the spans whose order matters: arguments without a name or a number, and tags.
function orderedSpans(text, kinds) {
  const spans = findSpans(text, kinds);
  return {
    byPlace: spans.filter((one) => one.kind === "placeholders" && matchAt(RULES.byPlace, one.text, 0)).map((one) => one.text),
    tags: spans.filter((one) => one.kind === "tags").map((one) => one.text),
  };
}

function isNested(tags) {
  const open = [];
  for (const tag of tags) {
    const name = matchAt(RULES.tagName, tag, 0)?.[1] ?? "";
    if (tag.startsWith("</")) {
      if (!open.length || open.pop() !== name) return false;
    } else if (!tag.endsWith("/>") && !RULES.unpaired.includes(name.toLowerCase())) open.push(name);
  }
  return !open.length;
}
