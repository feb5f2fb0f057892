"""Sampling: draw each token at random, with the probability that the model gives it.

A temperature flattens or sharpens the distribution. `top_k` keeps only the k most likely tokens (Fan et al., 2018), and
`top_p` the fewest tokens whose probabilities sum to at least p (Holtzman et al., 2020).
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from .step import Continuation, Step, WrappedStep

FIRST_COUNT = 64  # tokens that a draw looks at first; they are nearly always enough
ROUNDING = 1e-4  # in a sum of probabilities


class SampledStep(WrappedStep):
    """A `Step` whose best next token is drawn at random. Greedy search over this step produces samples.

    Each sentence has its own generator, so its sample does not depend on the other sentences. `top_k=0` and `top_p=1`
    leave no token out. The log-probabilities are the model's own, at temperature 1. Set `at_most_one` if the
    probabilities of all tokens sum to at most 1: it is then enough to look at the likely tokens.
    """

    def __init__(
        self,
        step: Step,
        generators: Sequence[Random],
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        at_most_one: bool = True,
    ) -> None:
        super().__init__(step, len(generators))
        self._generators = generators
        self._temperature = temperature
        self._top_k = top_k
        self._top_p = top_p
        self._at_most_one = at_most_one

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        """Draw one continuation for each sentence, whose only hypothesis must have a total of 0."""
        numbers = [self._generators[sentence].random() for sentence in self._sentences]
        chosen: list[list[Continuation]] = [[] for _ in numbers]
        open_rows = set(range(len(numbers)))
        count = self._top_k or FIRST_COUNT  # how many tokens to look at, to draw one of them
        while open_rows:
            asked = [total if n in open_rows else -math.inf for n, total in enumerate(totals)]
            for n, likely in enumerate(super().best(asked, count)):
                if n not in open_rows:
                    continue
                gains = [one.total for one in likely]
                if self._top_k or len(likely) < count:
                    unseen = 0.0
                else:
                    unseen = _unseen_weight(gains, self._temperature) if self._at_most_one else math.inf
                rank = _draw(gains, unseen, numbers[n], self._temperature, self._top_p)
                if rank is not None:
                    chosen[n] = likely[rank : rank + 1]
                    open_rows.remove(n)
            count *= 8
        return chosen


def sampling_probabilities(
    log_probabilities: Sequence[float], *, temperature: float, top_k: int, top_p: float
) -> list[float]:
    """Compute the probability with which each token of the vocabulary is drawn."""
    order = sorted(range(len(log_probabilities)), key=lambda token: -log_probabilities[token])
    order = order[:top_k] if top_k else order
    weights = _weights([log_probabilities[token] for token in order], temperature)
    kept = _nucleus(weights, sum(weights), top_p)
    probabilities = [0.0] * len(log_probabilities)
    for token, weight in zip(order[:kept], weights, strict=False):
        probabilities[token] = weight / sum(weights[:kept])
    return probabilities


def _draw(gains: Sequence[float], unseen: float, number: float, temperature: float, top_p: float) -> int | None:
    """Return the rank of the token drawn by `number`, from 0 to 1, or None if more tokens must be seen to decide.

    `gains` are the highest log-probabilities, best first. The tokens not seen have a total weight between 0 and
    `unseen`, relative to the best token. If both extremes draw the same token, so does every weight in between.
    """
    weights = _weights(gains, temperature)
    seen = sum(weights)
    least = _rank(weights, seen, number, top_p)
    if not unseen:
        return min(least, len(weights) - 1)  # rounding may have made the sum too high
    most = _rank(weights, seen + unseen, number, top_p)
    return least if least == most < len(weights) else None


def _rank(weights: Sequence[float], total: float, number: float, top_p: float) -> int:
    kept = _nucleus(weights, total, top_p)
    goal = number * (total if kept == len(weights) else sum(weights[:kept]))
    return next((rank for rank, reached in enumerate(accumulate(weights)) if reached > goal), len(weights))


def _nucleus(weights: Sequence[float], total: float, top_p: float) -> int:
    """Count how many of the first weights are needed to reach the share `top_p` of `total`. Returns all if too few."""
    if top_p >= 1:
        return len(weights)
    enough = (rank for rank, reached in enumerate(accumulate(weights), start=1) if reached >= top_p * total)
    return next(enough, len(weights))


def _weights(gains: Sequence[float], temperature: float) -> list[float]:
    """Compute the weights of tokens at a temperature, relative to the first token, which must be the most likely."""
    return [math.exp((gain - gains[0]) / temperature) for gain in gains]


def _unseen_weight(gains: Sequence[float], temperature: float) -> float:
    """Return an upper bound for the weight of all tokens that are not in `gains`, relative to the first token."""
    if temperature > 1:
        return math.inf
    rest = max(0.0, 1 - sum(map(math.exp, gains))) + ROUNDING
    # Such a token weighs p^(1/T) = p · p^(1/T - 1), and its p is at most that of the last token seen.
    return rest * math.exp(min(700.0, gains[-1] * (1 / temperature - 1) - gains[0] / temperature))
