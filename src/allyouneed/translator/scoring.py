"""Log-probabilities of given targets, computed with the step of an engine."""

from collections.abc import Sequence
from itertools import count

from ..decode import Step


def score_targets(step: Step, targets: Sequence[Sequence[int]]) -> list[list[float]]:
    """Return the log-probability, in nats, of every target token except the first.

    A target begins with the start token. Its source is the sentence of `step` with the same index.
    """
    scores: list[list[float]] = [[] for _ in targets]
    active = list(range(len(targets)))
    hypotheses = active
    for position in count(1):
        step(hypotheses, [targets[i][position - 1] for i in active])
        for n, i in enumerate(active):
            scores[i].append(step.log_probability(n, targets[i][position]))
        hypotheses = [n for n, i in enumerate(active) if position + 1 < len(targets[i])]
        active = [active[n] for n in hypotheses]
        if not active:
            break
    return scores
