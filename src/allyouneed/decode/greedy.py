"""Greedy search: take the most likely next token until the end token."""

from collections.abc import Iterator
from itertools import chain, count

from .step import Hypothesis, SearchLimits, Step


def write_tokens(step: Step, limits: SearchLimits) -> Iterator[tuple[int, int, float]]:
    """Write B sentences greedily; yield (sentence, token, log-probability of the token) for each token."""
    sentences = list(range(limits.sentences))  # every sentence has one hypothesis, and leaves this list when it ends
    hypotheses = sentences
    tokens = [limits.sos_id] * len(sentences)
    for length in count(1):
        step(hypotheses, tokens)
        best = step.best([0.0] * len(sentences), 1)
        hypotheses = []
        tokens = []
        for gain, n, token in chain.from_iterable(best):
            yield sentences[n], token, gain
            is_over = token == limits.eos_id or length == limits.max_lengths[sentences[n]]
            if not is_over and not limits.is_cancelled(sentences[n]):
                hypotheses.append(n)
                tokens.append(token)
        sentences = [sentences[n] for n in hypotheses]
        if not sentences:
            return


def greedy_search(step: Step, limits: SearchLimits) -> list[Hypothesis]:
    """Find a hypothesis for each of B sentences by taking the most likely token at every step."""
    ids: list[list[int]] = [[] for _ in limits.max_lengths]
    totals = [0.0] * limits.sentences
    for sentence, token, gain in write_tokens(step, limits):
        ids[sentence].append(token)
        totals[sentence] += gain
    return [Hypothesis.of(*pair, eos_id=limits.eos_id) for pair in zip(ids, totals, strict=True)]
