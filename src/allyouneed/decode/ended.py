"""The ended hypotheses of a beam search, and when they are enough."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from heapq import nlargest
from itertools import islice

from .beam_options import BeamOptions
from .step import Hypothesis, SearchLimits


class EndedHypotheses:
    """The hypotheses of one sentence that have ended so far, in a beam search of at most `max_length` tokens."""

    def __init__(self, max_length: int, is_cancelled: Callable[[], bool], options: BeamOptions) -> None:
        self._max_length, self._is_cancelled, self._options = max_length, is_cancelled, options
        self._hypotheses: list[Hypothesis] = []

    def add(self, ids: list[int], total: float, length: int, *, finished: bool = True) -> None:
        """Add a hypothesis with this total log-probability that ended as its token number `length`."""
        score = total / self._options.divisor(length)
        self._hypotheses.append(Hypothesis(ids, total, score, finished))

    def goes_on(self, best_total: float, active: Iterable[tuple[list[int], float]], length: int) -> bool:
        """Whether the search goes on after a step that made its hypotheses `length` tokens long.

        `best_total` is the highest total log-probability of the active hypotheses, minus infinity if there are none;
        `active` are their ids and totals, the best first. At `max_length` they are cut off, and count only if fewer
        than `nbest` hypotheses have ended.
        """
        if length == self._max_length:
            missing = max(0, self._options.nbest - len(self._hypotheses))
            for ids, total in islice(active, missing):
                self.add(ids, total, length, finished=False)
            return False
        if best_total == -math.inf or self._is_cancelled():
            return False
        if self._options.wait_for_beam:
            return not self._is_beam_decided(best_total, length)
        return not self._is_decided(best_total, length)

    def best(self) -> list[Hypothesis]:
        """The `nbest` best, the best first."""
        return best_first(self._hypotheses)[: self._options.nbest]

    def _is_beam_decided(self, best_total: float, length: int) -> bool:
        """Whether the worst of the `beam` best ended hypotheses is no worse than the best active one as it is now.

        The rule of Hugging Face transformers with early_stopping=False.
        """
        beam = self._options.beam
        if len(self._hypotheses) < beam:
            return False
        worst = nlargest(beam, (hypothesis.score for hypothesis in self._hypotheses))[-1]
        return worst >= best_total / self._options.divisor(length)

    def _is_decided(self, best_total: float, length: int) -> bool:
        """Whether no active hypothesis is likely to get among the `nbest` best.

        A total only falls, so the best score that an active hypothesis can reach is that of ending at the limit. Once
        `beam` · `patience` hypotheses have ended (Kasai et al., 2022), that of ending at the next step is enough.
        Counting alone would keep a bad one that ended early, however good those still active are.
        """
        ended, options = self._hypotheses, self._options
        if len(ended) < options.nbest:
            return False
        enough = len(ended) >= options.beam * options.patience
        last = length + 1 if enough else self._max_length
        worst_kept = nlargest(options.nbest, (hypothesis.score for hypothesis in ended))[-1]
        return worst_kept >= best_total / options.divisor(last)


def ended_hypotheses(limits: SearchLimits, options: BeamOptions) -> list[EndedHypotheses]:
    """Those of each sentence, before the first step."""
    return [
        EndedHypotheses(max_length, partial(limits.is_cancelled, sentence), options)
        for sentence, max_length in enumerate(limits.max_lengths.tolist())
    ]


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """The finished before the unfinished, each by score."""
    return sorted(hypotheses, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))
