// Greedy and beam search (§6.1), with the length penalty of Wu et al. (2016) or a plain one.

const NO_RULES = { min_length: 0, min_ratio: 0, no_repeat_ngram_size: 0, forced_eos: false, early_stopping: "nbest" };

// Search for the hypotheses of a source, best first: { ids, total, score, finished, steps }. Each step has its token,
// the log-probability, the five most likely tokens and the attention weights. `beam` has the candidates of each step of
// the search, best first: { token, total, parent, fate }; `parent` is an index among those that the previous step kept.
// The loop is that of decode/beam.py; with a beam of 1, that of decode/greedy.py; and with `phrases`, which every
// hypothesis must have, that of translator/constrained.py. `atMost` and `orders` are rules of decode/rules.py.
function search(model, source, options) {
  const step = model.start(source, options.switches);
  try {
    return { ...searchWith(step, model.config, source.length, options), encoderAttention: step.encoderAttention };
  } finally {
    step.free();
  }
}

function searchWith(step, config, sourceLength, options) {
  const { beam = 1, nbest = 1, temperature = 1, numbers = false, phrases = [], boundaries } = options;
  const longest = Math.max(maxTargetLength(config, sourceLength), phrases.length ? mostTokens(phrases) : 0);
  const maxLength = options.maxLength ?? Math.min(longest, config.decode.max_length);
  const rules = rulesOf(config, sourceLength, maxLength, options);
  const { sos_id: sos, eos_id: eos } = config;
  const isConstrained = phrases.length > 0;
  const width = isConstrained ? beamWidth(beam, phrases) : beam;
  let active = [{ ids: [], total: 0, steps: [], state: isConstrained && ConstraintState.begin(phrases, boundaries, sos) }];
  let [hypotheses, tokens] = [[0], [sos]];
  const ended = [];
  const history = [];
  for (let length = 1; length <= maxLength; length++) {
    step.next(hypotheses, tokens);
    if (temperature !== 1) step.soften(temperature);
    for (const rule of rules) active.forEach(({ ids }, n) => step.restrict(n, rule(ids)));
    const isForced = config.decode.forced_eos && length === maxLength; // to end, at no cost
    const tops = active.map((_, n) => step.best(active.map((_, other) => (other === n ? 0 : -Infinity)), 5));
    const continued = ({ hypothesis, token, total, state }) => {
      const { ids, steps } = active[hypothesis];
      const top = tops[hypothesis].map((one) => ({ token: one.token, logProbability: one.total }));
      const logProbability = step.logProbabilities(hypothesis)[token];
      const seen = { attention: step.attention[hypothesis], numbers: numbers ? step.numbers[hypothesis] : undefined };
      return { ids: [...ids, token], total, state, steps: [...steps, { token, logProbability, top, ...seen }] };
    };
    const end = (candidate) =>
      ended.push(hypothesisFrom({ ...continued(candidate), ids: active[candidate.hypothesis].ids }, length, config, true));
    const { candidates, kept } = isForced
      ? forcedEnds(active, beam, eos)
      : isConstrained
      ? constrainedFates(step, active, width, config, boundaries)
      : fates(step.best(active.map(({ total }) => total), 2 * beam), beam, eos);
    candidates.filter(({ fate }) => fate === "ended").forEach(end);
    history.push(candidates.map(({ token, total, hypothesis, fate }) => ({ token, total, parent: hypothesis, fate })));
    active = kept.map(continued);
    hypotheses = kept.map(({ hypothesis }) => hypothesis);
    tokens = kept.map(({ token }) => token);
    if (length === maxLength) {
      const complete = active.filter(({ state }) => !state || state.isComplete);
      ended.push(...complete.slice(0, Math.max(0, nbest - ended.length)).map((one) => hypothesisFrom(one, length, config, false)));
    }
    const bestActive = Math.max(...active.map(({ total }) => total));
    const isGreedy = beam === 1 && !isConstrained;
    if (!active.length || isDecided(ended, bestActive, length, maxLength, { beam, nbest, isGreedy }, config)) break;
  }
  ended.sort((one, other) => other.finished - one.finished || other.score - one.score);
  return { hypotheses: ended, beam: history };
}

// Decide the fate of the candidates, best first: "kept" (stays active), "ended" (a hypothesis) or "dropped".
function fates(best, beam, eos) {
  const kept = [];
  const candidates = best.map((candidate, rank) => {
    const fate = candidate.token === eos ? (rank < beam ? "ended" : "dropped") : kept.length < beam ? "kept" : "dropped";
    if (fate === "kept") kept.push(candidate);
    return { ...candidate, fate };
  });
  return { candidates, kept };
}

// The best hypotheses of the last step, which end if they have their phrases.
function forcedEnds(active, beam, eos) {
  const whole = active.flatMap(({ total, state }, hypothesis) => (!state || state.isComplete ? [{ hypothesis, token: eos, total }] : []));
  whole.sort((one, other) => other.total - one.total);
  return { candidates: whole.map((one, rank) => ({ ...one, fate: rank < beam ? "ended" : "dropped" })), kept: [] };
}

// Decide the fate of candidates that must have phrases. A candidate with all its phrases may end, however likely others
// are.
function constrainedFates(step, active, width, { eos_id: eos }, boundaries) {
  const found = constrainedCandidates(step, active, width, eos, boundaries);
  const further = found.map((one) => ({ ...one, state: active[one.hypothesis].state.after(one.token) }));
  const kept = shareOut(further, width);
  const ends = active.flatMap(({ state, total }, hypothesis) => {
    const gain = state.isComplete ? step.logProbabilities(hypothesis)[eos] : -Infinity;
    return gain > -Infinity ? [{ hypothesis, token: eos, total: total + gain, fate: "ended" }] : [];
  });
  const dropped = further.filter((one) => !kept.includes(one));
  const candidates = [...ends, ...kept.map((one) => ({ ...one, fate: "kept" })), ...dropped.map((one) => ({ ...one, fate: "dropped" }))];
  return { candidates: candidates.map(({ state: _, ...one }) => one), kept };
}

// Rules, which map the ids of a hypothesis to the tokens that must not come next.
function rulesOf(config, sourceLength, maxLength, { ngram, atMost = [], orders = [] }) {
  const minLength = Math.min(minTargetLength(config, sourceLength), maxLength);
  const size = ngram ?? config.decode.no_repeat_ngram_size;
  return [
    (ids) => repeating(ids, size),
    (ids) => (ids.length + 1 < minLength ? [config.eos_id] : []),
    (ids) => atMost.flatMap(({ weights, highest }) => {
      const left = highest - ids.reduce((sum, id) => sum + (weights.get(id) ?? 0), 0);
      return [...weights].filter(([, weight]) => weight > left).map(([id]) => id);
    }),
    (ids) => orders.flatMap((order) => {
      const following = order.slice(seenPhrases(order, ids));
      const next = (phrases) => phrases.flat().filter((spelling) => endsWith(ids, spelling.slice(0, -1))).map((spelling) => spelling.at(-1));
      const due = new Set(next(following.slice(0, 1)));
      return next(following.slice(1)).filter((token) => !due.has(token));
    }),
  ];
}

// Count how many of an order's phrases occur in `ids`, in order and starting from the first phrase.
function seenPhrases(order, ids) {
  let count = 0;
  for (let end = 1; end <= ids.length; end++) {
    if (order[count]?.some((spelling) => endsWith(ids.slice(0, end), spelling))) count++;
  }
  return count;
}

const endsWith = (ids, end) => ids.length >= end.length && end.every((id, i) => id === ids[ids.length - end.length + i]);

function maxTargetLength(config, sourceLength) {
  const { length_ratio: ratio, extra_length: extra, max_length: limit } = config.decode;
  return Math.max(1, Math.min(Math.floor(ratio * (sourceLength - config.source_specials)) + extra, limit));
}

function minTargetLength(config, sourceLength) {
  return Math.max(config.decode.min_length, Math.ceil(config.decode.min_ratio * (sourceLength - config.source_specials)));
}

// Return the tokens that would repeat an n-gram.
function repeating(ids, n) {
  const latest = ids.slice(ids.length - n + 1).join();
  return n ? ids.slice(n - 1).filter((_, i) => ids.slice(i, i + n - 1).join() === latest) : [];
}

function hypothesisFrom({ ids, total, steps }, length, config, finished) {
  return { ids, total, score: total / lengthPenalty(length, config), finished, steps };
}

function lengthPenalty(length, { decode: { alpha, length_penalty: kind } }) {
  return kind === "gnmt" ? ((5 + length) / 6) ** alpha : length ** alpha;
}

// Return true if no active hypothesis is likely to be among the `nbest` best in the end. A total can only fall, so the
// best score that an active hypothesis can reach is its present total at the longest length or, once `beam` hypotheses
// have ended, at the next step. With `early_stopping` "beam", as in transformers, the search stops once `beam`
// hypotheses have ended that are all at least as good as the best active one is now. Greedy search ends with its first
// hypothesis.
function isDecided(ended, bestActive, length, maxLength, { beam = 1, nbest = 1, isGreedy }, config) {
  if (isGreedy) return ended.length > 0;
  const waits = config.decode.early_stopping === "beam";
  const count = waits ? beam : nbest;
  if (ended.length < count) return false;
  const last = waits ? length : ended.length >= beam * config.decode.patience ? length + 1 : maxLength;
  const scores = ended.map((one) => one.score).sort((one, other) => other - one);
  return scores[count - 1] >= bestActive / lengthPenalty(last, config);
}
