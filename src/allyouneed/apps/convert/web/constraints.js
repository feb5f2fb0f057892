// The phrases that a translation must contain (see translator/constraints.py), and a beam search that writes them, for
// one sentence (see translator/constrained.py and translator/constraint_state.py). A phrase is { spellings, times }.

class Constraints {
  constructor({ copied, mustCopy }, tokenizer) {
    Object.assign(this, { kinds: copied, mustCopy, tokenizer });
    const pieces = tokenizer.names.map((_, id) => tokenizer.piece(id));
    const idsWhere = (test) => new Set(pieces.flatMap((piece, id) => (piece && test(piece) ? [id] : [])));
    const first = (piece) => String.fromCodePoint(piece.codePointAt(0));
    const last = (piece) => [...piece.slice(-2)].at(-1);
    const isPlain = (piece) => !SPECIALS.includes(piece);
    this.boundaries = {
      startsInWord: idsWhere((piece) => isPlain(piece) && isInWord(first(piece))),
      endsInWord: idsWhere((piece) => isPlain(piece) && isInWord(last(piece))),
    };
    const withSigns = idsWhere((piece) => isPlain(piece) && /[%{}<>]/.test(piece));
    this.piecesWithSigns = [...withSigns].map((id) => [id, pieces[id]]);
  }

  spans(text) {
    return findSpans(text, this.kinds);
  }

  differ(source, target) {
    return this.kinds.length > 0 && spansDiffer(source, target, this.kinds);
  }

  extra(source, target) {
    return extraSpans(source, target, this.kinds);
  }

  // Find the phrases that the translation of a text must contain. A phrase that the vocabulary cannot spell is skipped
  // if it need not be copied.
  phrases(text) {
    return [...countOf(this.spans(text).map((span) => span.text))].flatMap(([required, times]) => {
      const spellings = this.spellings(required);
      if (!spellings.length && this.mustCopy) throw new Error(`“${required}” must be in the translation, but the vocabulary cannot spell it`);
      return spellings.length ? [{ spellings, times }] : [];
    });
  }

  // Return the ids of a text after a blank, after a newline and after a bracket; [] if the vocabulary cannot spell it.
  spellings(required) {
    const inner = (text) => {
      try {
        return this.tokenizer.encodeNormal(text).slice(this.tokenizer.before.length, -this.tokenizer.after.length || undefined);
      } catch {
        return null;
      }
    };
    const ids = inner(required);
    const written = ids && this.tokenizer.decode(ids).trim();
    if (!written || ids.includes(this.tokenizer.unk)) return [];
    const spellings = new Map();
    for (const carrier of RULES.carriers) {
      const [before, whole] = [inner(carrier), inner(carrier + required)];
      if (!before || !whole) continue;
      const spelling = whole.slice(before.length);
      const isWhole = before.every((id, i) => id === whole[i]) && this.tokenizer.decode(spelling).trim() === written;
      if (isWhole) spellings.set(String(spelling), spelling);
    }
    return [...spellings.values()];
  }

  // Return, for each sign of the placeholders and tags in two texts, how often tokens with this sign may occur.
  limits(source, extra) {
    const required = this.spans(source);
    return [...new Set([...spanSigns(source, this.kinds), ...spanSigns(extra, this.kinds)])].map((sign) => {
      const times = (text) => text.split(sign).length - 1;
      const inSpans = required.reduce((sum, span) => sum + times(span.text), 0);
      const highest = inSpans + straySigns(source, this.kinds).filter(({ text }) => text === sign).length;
      const weights = new Map(this.piecesWithSigns.filter(([, piece]) => piece.includes(sign)).map(([id, piece]) => [id, times(piece)]));
      return { weights, highest };
    });
  }

  // Return the spans that must keep the order of the source, each with its spellings.
  orders(source) {
    return Object.values(orderedSpans(source, this.kinds)).flatMap((spans) => {
      const spellings = spans.map((span) => this.spellings(span));
      return new Set(spans).size > 1 && spellings.every((some) => some.length) ? [spellings] : [];
    });
  }

  // Pick one token of every surplus span: the first with a character that is not a letter, or else the first.
  markers(ids, spans) {
    const starts = Array.from({ length: ids.length + 1 }, (_, end) => this.tokenizer.decode(ids.slice(0, end)).length);
    const found = spans.flatMap(({ start, end }) => {
      const inside = ids.filter((_, k) => starts[k] < end && starts[k + 1] > start);
      const signs = inside.filter((id) => !/^\p{L}+$/u.test(this.tokenizer.piece(id).replaceAll("␣", "")));
      return (signs.length ? signs : inside).slice(0, 1);
    });
    return [...new Set(found)];
  }
}

// All ways to read the tokens of a hypothesis: how often each phrase is missing, and the phrase in progress, [phrase,
// spelling, tokens].
class ConstraintState {
  constructor(phrases, boundaries, last, readings) {
    Object.assign(this, { phrases, boundaries, last, readings });
  }

  static begin(phrases, boundaries, sos) {
    return new ConstraintState(phrases, boundaries, sos, [{ remaining: phrases.map(({ times }) => times), inProgress: null }]);
  }

  after(token) {
    const sameWord = this.isSameWord(token);
    const readings = [];
    for (const reading of this.readings) {
      const { remaining, inProgress } = reading;
      if (inProgress && !this.isDone(reading)) {
        const [phrase, spelling, count] = inProgress;
        if (this.phrases[phrase].spellings[spelling][count] === token) readings.push({ remaining, inProgress: [phrase, spelling, count + 1] });
        continue;
      }
      if (inProgress && sameWord) continue; // the phrase was the beginning of a longer word
      const missing = this.missing(reading);
      readings.push({ remaining: missing, inProgress: null });
      if (sameWord) continue;
      for (const [phrase, spelling, first] of this.beginnings(missing)) {
        if (first === token) readings.push({ remaining: missing, inProgress: [phrase, spelling, 1] });
      }
    }
    return new ConstraintState(this.phrases, this.boundaries, token, undominated(readings));
  }

  get isComplete() {
    return this.readings.some((reading) => this.missing(reading).every((count) => !count));
  }

  // Rank the most advanced reading: phrases written, tokens of the next phrase, and whether a phrase can begin. Larger
  // is more.
  get rank() {
    const ranks = this.readings.map((reading) => {
      const { remaining, inProgress } = reading;
      const written = this.phrases.reduce((sum, { times }, i) => sum + times - remaining[i], 0);
      return [written, inProgress?.[2] ?? 0, Number(this.beginnings(remaining).some(([, , first]) => !this.isSameWord(first)))];
    });
    return ranks.reduce((best, rank) => (compareRanks(rank, best) > 0 ? rank : best));
  }

  // Return the tokens that advance a phrase; any token that begins, or ends, a word may advance one too.
  nextTokens() {
    const tokens = new Set();
    let [anyNewWord, anyWordEnd] = [false, false];
    for (const reading of this.readings) {
      const { inProgress } = reading;
      if (inProgress && !this.isDone(reading)) {
        tokens.add(this.phrases[inProgress[0]].spellings[inProgress[1]][inProgress[2]]);
        continue;
      }
      anyNewWord ||= inProgress !== null && this.boundaries.endsInWord.has(this.last);
      const firsts = this.beginnings(this.missing(reading)).map(([, , first]) => first);
      const startable = firsts.filter((first) => !this.isSameWord(first));
      startable.forEach((first) => tokens.add(first));
      anyWordEnd ||= firsts.length > 0 && !startable.length;
    }
    return { tokens, anyNewWord, anyWordEnd };
  }

  isSameWord(token) {
    return this.boundaries.endsInWord.has(this.last) && this.boundaries.startsInWord.has(token);
  }

  isDone({ inProgress }) {
    return inProgress !== null && inProgress[2] === this.phrases[inProgress[0]].spellings[inProgress[1]].length;
  }

  missing(reading) {
    if (!this.isDone(reading)) return reading.remaining;
    return reading.remaining.map((count, phrase) => count - (phrase === reading.inProgress[0]));
  }

  beginnings(missing) {
    return this.phrases.flatMap(({ spellings }, phrase) => (missing[phrase] ? spellings.map((ids, i) => [phrase, i, ids[0]]) : []));
  }
}

const compareRanks = (one, other) => one.map((part, i) => part - other[i]).find(Boolean) ?? 0;

// Drop readings that are dominated: another one has the same phrase in progress and misses no phrase more often.
function undominated(readings) {
  const total = ({ remaining }) => remaining.reduce((sum, count) => sum + count, 0);
  const kept = new Map();
  for (const reading of readings.toSorted((one, other) => total(one) - total(other))) {
    const name = String(reading.inProgress);
    if (!kept.has(name)) kept.set(name, []);
    const better = kept.get(name);
    if (!better.some((other) => other.remaining.every((count, i) => count <= reading.remaining[i]))) better.push(reading);
  }
  return [...kept.values()].flat();
}

const sumOf = (phrases, value) => phrases.reduce((sum, phrase) => sum + phrase.times * value(phrase.spellings.map((ids) => ids.length)), 0);
const mostTokens = (phrases) => 1 + sumOf(phrases, (lengths) => Math.max(...lengths) + 2); // always enough
const fewestTokens = (phrases) => sumOf(phrases, (lengths) => Math.min(...lengths));

function beamWidth(beam, phrases) {
  const wanted = Math.max(beam * (1 + sumOf(phrases, () => 1)), beam + sumOf(phrases, (lengths) => Math.max(...lengths)));
  return Math.min(wanted, Math.max(beam, RULES.widest));
}

// Find the continuations for a step of a constrained search: the most likely ones, and all that advance a phrase.
function constrainedCandidates(step, active, width, eos, boundaries) {
  const totals = active.map(({ total }) => total);
  const likely = step.best(totals, width + active.length).filter(({ token }) => token !== eos).slice(0, width);
  const pairs = new Map(likely.map((one) => [`${one.hypothesis} ${one.token}`, one]));
  const add = (one) => pairs.set(`${one.hypothesis} ${one.token}`, one);
  active.forEach(({ state }, hypothesis) => {
    const { tokens, anyNewWord, anyWordEnd } = state.nextTokens();
    const excluded = [new Set(), ...(anyNewWord ? [boundaries.startsInWord] : []), ...(anyWordEnd ? [boundaries.endsInWord] : [])];
    const row = step.logProbabilities(hypothesis).slice();
    for (const set of excluded) {
      let best = -1;
      row.forEach((value, token) => {
        if (value > (best < 0 ? -Infinity : row[best]) && token !== eos && !set.has(token)) best = token;
      });
      if (best >= 0) add({ hypothesis, token: best, total: totals[hypothesis] + row[best] });
    }
    for (const token of tokens) {
      if (token !== eos && row[token] > -Infinity) add({ hypothesis, token, total: totals[hypothesis] + row[token] });
    }
  });
  return [...pairs.values()].sort((one, other) => one.hypothesis - other.hypothesis || one.token - other.token);
}

// Fill the beam in rounds. Each round takes the next best candidate of every bank, the most advanced bank first.
function shareOut(candidates, width) {
  const banks = new Map();
  for (const candidate of candidates.toSorted((one, other) => other.total - one.total)) {
    const { rank } = candidate.state;
    if (!banks.has(String(rank))) banks.set(String(rank), { rank, members: [] });
    banks.get(String(rank)).members.push(candidate);
  }
  const furthest = [...banks.values()].sort((one, other) => compareRanks(other.rank, one.rank));
  const shared = [];
  for (let turn = 0; shared.length < width && furthest.some(({ members }) => turn < members.length); turn++) {
    shared.push(...furthest.flatMap(({ members }) => members.slice(turn, turn + 1)));
  }
  return shared.slice(0, width);
}
