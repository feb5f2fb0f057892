"""The most likely sentence, within a beam (§6.1).

At every step each of a sentence's `beam` hypotheses is continued with every token of the vocabulary, and the best
`beam` of all these continuations stay active. If one of the best ends, it is put aside. Active hypotheses are ranked
by their total log-probability, ended ones by their score (beam_options.py).
"""

from itertools import chain, count
from typing import NamedTuple

from .beam_options import BeamOptions
from .step import Continuation, Hypothesis, SearchLimits, Step, best_first


class Partial(NamedTuple):
    """An active hypothesis: its tokens without the start token, and its total log-probability."""

    ids: list[int]
    total: float


def beam_search(step: Step, limits: SearchLimits, options: BeamOptions) -> list[list[Hypothesis]]:
    """Find for each of B sentences the `options.nbest` best hypotheses within the beam, the best first.

    A beam of 1 is greedy search; a beam as wide as the space of all sentences finds the best of them.
    """
    ended: list[list[Hypothesis]] = [[] for _ in limits.max_lengths]
    active = {sentence: [Partial([], 0.0)] for sentence in range(limits.sentences)}
    hypotheses = list(active)
    tokens = [limits.sos_id] * len(active)
    for length in count(1):
        step(hypotheses, tokens)
        rows = list(chain.from_iterable(active.values()))
        # At most `beam` of the best 2 · beam end, so at least `beam` stay active.
        best = step.best([partial.total for partial in rows], 2 * options.beam)
        sentences = list(active)
        active = {}
        hypotheses = []
        tokens = []
        for sentence, continuations in zip(sentences, best, strict=True):
            found = ended[sentence]
            max_length = limits.max_lengths[sentence]
            kept: list[Continuation] = []
            for rank, one in enumerate(continuations):
                if one.token != limits.eos_id and len(kept) < options.beam:
                    kept.append(one)
                elif one.token == limits.eos_id and rank < options.beam:
                    found.append(options.hypothesis(rows[one.hypothesis].ids, one.total, length))
            after = [Partial([*rows[one.hypothesis].ids, one.token], one.total) for one in kept]
            if length == max_length:  # a hypothesis cut off here counts only if too few have ended
                missing = max(0, options.nbest - len(found))
                found += [options.hypothesis(one.ids, one.total, length, finished=False) for one in after[:missing]]
                continue
            is_over = not after or limits.is_cancelled(sentence)
            if not is_over and not options.is_decided(found, after[0].total, length, max_length):
                active[sentence] = after
                hypotheses += [one.hypothesis for one in kept]
                tokens += [one.token for one in kept]
        if not active:
            break
    return [best_first(found)[: options.nbest] for found in ended]
