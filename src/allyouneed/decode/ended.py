"""The ended hypotheses of a beam search, and when they are enough."""

import math
from collections.abc import Iterable
from heapq import nlargest
from itertools import islice

from .beam_options import BeamOptions
from .step import Hypothesis, SearchLimits


class EndedHypotheses:
    """For each sentence of a beam search the hypotheses that have ended so far."""

    def __init__(self, limits: SearchLimits, options: BeamOptions) -> None:
        self._limits, self._options = limits, options
        self._max_lengths: list[int] = limits.max_lengths.tolist()
        self._by_sentence: list[list[Hypothesis]] = [[] for _ in self._max_lengths]

    def add(self, sentence: int, ids: list[int], total: float, length: int, *, finished: bool = True) -> None:
        """Add a hypothesis with this total log-probability that ended as its token number `length`."""
        score = total / self._options.divisor(length)
        self._by_sentence[sentence].append(Hypothesis(ids, total, score, finished))

    def goes_on(self, sentence: int, best_total: float, active: Iterable[tuple[list[int], float]], length: int) -> bool:
        """Whether the search of a sentence goes on after a step that made its hypotheses `length` tokens long.

        `best_total` is the highest total log-probability of its active hypotheses, minus infinity if there are none;
        `active` are their ids and totals, the best first. At the limit of the sentence they are cut off there, and
        count only if fewer than `nbest` hypotheses have ended.
        """
        if length == self._max_lengths[sentence]:
            missing = max(0, self._options.nbest - len(self._by_sentence[sentence]))
            for ids, total in islice(active, missing):
                self.add(sentence, ids, total, length, finished=False)
            return False
        if best_total == -math.inf or self._limits.is_cancelled(sentence):
            return False
        return not self._is_decided(sentence, best_total, length)

    def best(self) -> list[list[Hypothesis]]:
        """The `nbest` best of each sentence, the best first."""
        return [best_first(hypotheses)[: self._options.nbest] for hypotheses in self._by_sentence]

    def _is_decided(self, sentence: int, best_total: float, length: int) -> bool:
        """Whether no active hypothesis of a sentence is likely to get among its `nbest` best.

        A total only falls, so the best score that an active hypothesis can reach is that of ending at the limit. Once
        `beam` · `patience` hypotheses have ended (Kasai et al., 2022), that of ending at the next step is enough.
        Counting alone would keep a bad one that ended early, however good those still active are.
        """
        ended, options = self._by_sentence[sentence], self._options
        if len(ended) < options.nbest:
            return False
        enough = len(ended) >= options.beam * options.patience
        last = length + 1 if enough else self._max_lengths[sentence]
        worst_kept = nlargest(options.nbest, (hypothesis.score for hypothesis in ended))[-1]
        return worst_kept >= best_total / options.divisor(last)


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """The finished before the unfinished, each by score."""
    return sorted(hypotheses, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))
