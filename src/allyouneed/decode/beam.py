"""Beam search (§6.1): find the most likely sentence, keeping the best few hypotheses at every step.

Every step extends each of a sentence's `beam` hypotheses by every token of the vocabulary and keeps the best `beam` of
the results. Hypotheses that end with the end token are set aside. Active hypotheses are ranked by log-probability,
ended hypotheses by their score (`beam_options.py`).
"""

from itertools import chain, count
from typing import NamedTuple

from .beam_options import BeamOptions
from .step import Continuation, Hypothesis, SearchLimits, Step, best_first


class Partial(NamedTuple):
    """An active hypothesis: its tokens without the start token, and the log-probability of them all."""

    ids: list[int]
    total: float


def beam_search(step: Step, limits: SearchLimits, options: BeamOptions) -> list[list[Hypothesis]]:
    """Find the `options.nbest` best hypotheses for each of B sentences, best first.

    A beam of 1 is greedy search. A beam with room for every possible sentence finds the best sentence.
    """
    ended: list[list[Hypothesis]] = [[] for _ in limits.max_lengths]
    active = {sentence: [Partial([], 0.0)] for sentence in range(limits.sentences)}
    hypotheses = list(active)
    tokens = [limits.sos_id] * len(active)
    for length in count(1):
        step(hypotheses, tokens)
        rows = list(chain.from_iterable(active.values()))
        # At most `beam` of the best 2 · beam continuations end the sentence, so at least `beam` stay active.
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
            if length == max_length:  # cut off here, a hypothesis counts only if too few have ended
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
