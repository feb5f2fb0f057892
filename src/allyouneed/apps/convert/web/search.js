// Greedy and beam search (§6.1), with the length penalty of Wu et al. (2016) or a plain one.

const NO_RULES = { min_length: 0, min_ratio: 0, no_repeat_ngram_size: 0 };

// Ids of a source → hypotheses, the best first: { ids, total, score, finished, steps }, each step with its token, its
// log-probability, the five likeliest tokens and the attention weights; and `beam`: for each step of the search its
// candidates, the best first: { token, total, parent, fate }. `parent` counts those that the step before has kept.
// The loop is that of decode/beam.py, and with a beam of 1 that of decode/greedy.py.
function search(model, source, options) {
  const step = model.start(source, options.switches);
  try {
    return { ...searchWith(step, model.config, source.length, options), encoderAttention: step.encoderAttention };
  } finally {
    step.free();
  }
}

function searchWith(step, config, sourceLength, { beam = 1, temperature = 1, numbers = false, maxLength }) {
  maxLength ??= maxTargetLength(config, sourceLength);
  const minLength = Math.min(minTargetLength(config, sourceLength), maxLength);
  const { sos_id: sos, eos_id: eos } = config;
  let active = [{ ids: [], total: 0, steps: [] }];
  let [hypotheses, tokens] = [[0], [sos]];
  const ended = [];
  const history = [];
  for (let length = 1; length <= maxLength; length++) {
    step.next(hypotheses, tokens);
    if (temperature !== 1) step.soften(temperature);
    active.forEach(({ ids }, n) => {
      step.restrict(n, repeating(ids, config.decode.no_repeat_ngram_size));
      if (length < minLength) step.restrict(n, [eos]);
    });
    const candidates = step.best(active.map(({ total }) => total), 2 * beam);
    const tops = active.map((_, n) => step.best(active.map((_, other) => (other === n ? 0 : -Infinity)), 5));
    const continued = ({ hypothesis, token, total }) => {
      const { ids, steps } = active[hypothesis];
      const top = tops[hypothesis].map((one) => ({ token: one.token, logProbability: one.total }));
      const logProbability = step.logProbabilities(hypothesis)[token];
      const seen = { attention: step.attention[hypothesis], numbers: numbers ? step.numbers[hypothesis] : undefined };
      return { ids: [...ids, token], total, steps: [...steps, { token, logProbability, top, ...seen }] };
    };
    const kept = [];
    history.push(
      candidates.map((candidate, rank) => {
        const { token, total, hypothesis } = candidate;
        let fate = "dropped";
        if (token !== eos && kept.length < beam) {
          fate = "kept";
          kept.push(candidate);
        } else if (token === eos && rank < beam) {
          fate = "ended";
          ended.push(hypothesisFrom({ ...continued(candidate), ids: active[hypothesis].ids }, length, config, true));
        }
        return { token, total, parent: hypothesis, fate };
      }),
    );
    active = kept.map(continued);
    hypotheses = kept.map(({ hypothesis }) => hypothesis);
    tokens = kept.map(({ token }) => token);
    if (!active.length || isDecided(ended, active[0].total, length, maxLength, beam, config)) break;
    if (length === maxLength && !ended.length) ended.push(...active.map((one) => hypothesisFrom(one, length, config, false)));
  }
  ended.sort((one, other) => other.finished - one.finished || other.score - one.score);
  return { hypotheses: ended, beam: history };
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

function hypothesisFrom({ ids, total, steps }, length, config, finished) {
  return { ids, total, score: total / lengthPenalty(length, config), finished, steps };
}

function lengthPenalty(length, { decode: { alpha, length_penalty: kind } }) {
  return kind === "gnmt" ? ((5 + length) / 6) ** alpha : length ** alpha;
}

// Whether no active hypothesis is likely to beat the best ended one. A total only falls, so its best possible score is
// that of ending at the longest length, or at the next step once as many hypotheses have ended as the beam is wide.
// Greedy search ends with its first.
function isDecided(ended, bestActive, length, maxLength, beam, config) {
  if (!ended.length || beam === 1) return ended.length > 0;
  const last = ended.length >= beam * config.decode.patience ? length + 1 : maxLength;
  return Math.max(...ended.map((one) => one.score)) >= bestActive / lengthPenalty(last, config);
}
