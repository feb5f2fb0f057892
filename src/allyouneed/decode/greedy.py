"""The most likely next token, until the end token."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count

from .step import Continuation, Hypothesis, SearchLimits, Step

Choose = Callable[[Step, Sequence[int]], list[list[Continuation]]]
"""A step and the sentence of each of its hypotheses → for each a list of the one token that comes next."""


def most_likely(step: Step, sentences: Sequence[int]) -> list[list[Continuation]]:
    """Choose the most likely token for every sentence."""
    return step.best([0.0] * len(sentences), 1)


def write_tokens(step: Step, limits: SearchLimits, choose: Choose = most_likely) -> Iterator[tuple[int, int, float]]:
    """Write B sentences, one hypothesis each: yield a sentence, its next token, and the log-probability of that."""
    active = list(range(limits.sentences))
    hypotheses, tokens = active, [limits.sos_id] * len(active)
    for length in count(1):
        step(hypotheses, tokens)
        chosen = choose(step, active)
        hypotheses, tokens = [], []
        for n, sentence in enumerate(active):
            is_last = length == limits.max_lengths[sentence]
            if is_last and limits.forced_end:
                chosen[n] = [Continuation(0.0, n, limits.eos_id)]
            for gain, _, token in chosen[n]:
                yield sentence, token, gain
                if token != limits.eos_id and not is_last and not limits.is_cancelled(sentence):
                    hypotheses.append(n)
                    tokens.append(token)
        active = [active[n] for n in hypotheses]
        if not active:
            return


def greedy_search(step: Step, limits: SearchLimits, choose: Choose = most_likely) -> list[Hypothesis]:
    """Find for each of B sentences the hypothesis that takes the most likely token at every step.

    Sentences that have ended leave the batch. The score is the log-probability.
    """
    ids: list[list[int]] = [[] for _ in limits.max_lengths]
    totals = [0.0] * limits.sentences
    for sentence, token, gain in write_tokens(step, limits, choose):
        ids[sentence].append(token)
        totals[sentence] += gain
    ended = [limits.eos_id in written for written in ids]  # only ever as the last one
    return [
        Hypothesis(written[:-1] if end else written, total, total, end)
        for written, total, end in zip(ids, totals, ended, strict=True)
    ]
