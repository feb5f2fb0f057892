// Greedy and beam search (§6.1), with the length penalty of Wu et al. (2016) or a plain one.

const NO_RULES = { min_length: 0, min_ratio: 0, no_repeat_ngram_size: 0 };

// Ids of a source → hypotheses, the best first: { ids, total, score, finished, steps }, each step with its token, its
// log-probability, the five likeliest tokens and the attention weights; and `beam`: for each step of the search its
// candidates, the best first: { token, total, parent, fate }. `parent` counts those that the step before has kept.
function search(model, source, options) {
  const { beam = 1, switches = ALL_ON, temperature = 1 } = options;
  const encoded = model.encode(source, switches);
  const maxLength = options.maxLength ?? maxTargetLength(model.config, source.length);
  const minLength = Math.min(minTargetLength(model.config, source.length), maxLength);
  const { sos_id: sos, eos_id: eos } = model.config;
  let active = [{ ids: [], total: 0, state: model.start(encoded), steps: [] }];
  const ended = [];
  const history = [];
  for (let length = 1; length <= maxLength; length++) {
    const tooShort = length < minLength ? [eos] : [];
    const candidates = active.flatMap((hypothesis) => continuations(model, hypothesis, beam, { sos, switches, temperature, tooShort }));
    candidates.sort((one, other) => other.total - one.total);
    const kept = [];
    history.push(
      candidates.slice(0, 2 * beam).map((candidate, rank) => {
        const { token, total, parent } = candidate;
        let fate = "dropped";
        if (token !== eos && kept.length < beam) {
          fate = "kept";
          kept.push(candidate);
        } else if (token === eos && rank < beam) {
          fate = "ended";
          ended.push(hypothesisFrom(candidate, parent.ids, length, model.config, true));
        }
        return { token, total, parent: active.indexOf(parent), fate };
      }),
    );
    active = kept.map((candidate) => ({
      ids: [...candidate.parent.ids, candidate.token],
      total: candidate.total,
      state: candidate.state,
      steps: candidate.steps,
    }));
    if (!active.length || isDecided(ended, active[0].total, length, maxLength, beam, model.config)) break;
    if (length === maxLength && !ended.length) {
      ended.push(...active.map((one) => hypothesisFrom(one, one.ids, length, model.config, false)));
    }
  }
  ended.sort((one, other) => other.finished - one.finished || other.score - one.score);
  return { hypotheses: ended, encoderAttention: encoded.seen, beam: history };
}

function maxTargetLength(config, sourceLength) {
  const { length_ratio: ratio, extra_length: extra, max_length: limit } = config.decode;
  return Math.max(1, Math.min(Math.floor(ratio * (sourceLength - config.source_specials)) + extra, limit));
}

function minTargetLength(config, sourceLength) {
  return Math.max(config.decode.min_length, Math.ceil(config.decode.min_ratio * (sourceLength - config.source_specials)));
}

// The tokens that would repeat an n-gram.
function repeating(ids, n) {
  const latest = ids.slice(ids.length - n + 1).join();
  return n ? ids.slice(n - 1).filter((_, i) => ids.slice(i, i + n - 1).join() === latest) : [];
}

// The values without those of the banned tokens; a ban of every token is ignored.
function without(values, banned) {
  const left = banned.length ? values.map((value, token) => (banned.includes(token) ? -Infinity : value)) : values;
  return left.some((value) => value > -Infinity) ? left : values;
}

function continuations(model, hypothesis, beam, { sos, switches, temperature, tooShort }) {
  const tokens = [sos, ...hypothesis.ids];
  // Without the causal mask earlier positions see later tokens, so every step computes all positions anew.
  const { logProbabilities, state, seen } = switches.causal
    ? model.decode(tokens.slice(-1), hypothesis.state, switches)
    : model.decode(tokens, { ...hypothesis.state, caches: hypothesis.state.caches.map(() => [[], []]), length: 0 }, switches);
  const likely = temperature === 1 ? logProbabilities : logSoftmax(logProbabilities.map((v) => v / temperature), []);
  const values = without(without(likely, repeating(hypothesis.ids, model.config.decode.no_repeat_ngram_size)), tooShort);
  const best = highest(values, Math.max(2 * beam, 5));
  const top = best.slice(0, 5).map((token) => ({ token, logProbability: values[token] }));
  const attention = Object.fromEntries(Object.entries(seen).map(([name, heads]) => [name, heads.map((rows) => rows.at(-1))]));
  const numbers = switches.numbers && Object.fromEntries(Object.entries(seen).map(([name, heads]) => [name, heads.numbers]));
  return best
    .slice(0, 2 * beam)
    .filter((token) => values[token] > -Infinity)
    .map((token) => ({
      token,
      parent: hypothesis,
      total: hypothesis.total + values[token],
      state: switches.causal ? state : hypothesis.state,
      steps: [...hypothesis.steps, { token, logProbability: values[token], top, attention, numbers }],
    }));
}

function hypothesisFrom({ total, steps }, ids, length, config, finished) {
  return { ids, total, score: total / lengthPenalty(length, config), finished, steps };
}

function lengthPenalty(length, { decode: { alpha, length_penalty: kind } }) {
  return kind === "gnmt" ? ((5 + length) / 6) ** alpha : length ** alpha;
}

// Whether no active hypothesis is likely to beat the best ended one. A total only falls, so its best possible score is
// that of ending at the longest length, or at the next step once as many hypotheses have ended as the beam is wide.
function isDecided(ended, bestActive, length, maxLength, beam, config) {
  if (!ended.length) return false;
  const last = ended.length >= beam * config.decode.patience ? length + 1 : maxLength;
  return Math.max(...ended.map((one) => one.score)) >= bestActive / lengthPenalty(last, config);
}

// The indices of the highest values, the highest first; of equal ones the lower index.
function highest(values, count) {
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && values[i] <= values[best[count - 1]]) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]] < values[i]) at--;
    best.splice(at, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}
