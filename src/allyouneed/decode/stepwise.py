"""One hypothesis a sentence, one token at a time: what greedy search, sampling and streaming share."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ..lazy import Tensor
from .step import AnyState, Hypothesis, SearchLimits, Step

TokenChooser = Callable[[Tensor, Sequence[int]], tuple[Tensor, Tensor]]
"""Log-probabilities (N, V) and the sentence of each row → those of the chosen tokens, (N,), and the tokens, (N,)."""


class StepTokens(NamedTuple):
    """The next token of each sentence that is still active, side by side; those `finished` get no more."""

    sentences: list[int]
    tokens: list[int]
    log_probabilities: list[float]
    finished: list[int]


def generate_stepwise(
    step: Step[AnyState],
    state: AnyState,
    limits: SearchLimits,
    *,
    choose: TokenChooser,
) -> Iterator[StepTokens]:
    """Write B sentences token by token. One that has ended, reached its limit or was cancelled leaves the batch."""
    active, steps, max_lengths = list(range(limits.sentences)), 0, limits.max_lengths.tolist()
    last = limits.ids([limits.sos_id] * len(active))
    while True:
        log_probabilities, state = step(last, state)
        steps += 1
        gains, last = choose(log_probabilities, active)
        tokens = last.tolist()
        ended = [
            b
            for b, (sentence, token) in enumerate(zip(active, tokens, strict=True))
            if token == limits.eos_id or steps == max_lengths[sentence] or limits.is_cancelled(sentence)
        ]
        yield StepTokens(active, tokens, gains.tolist(), [active[b] for b in ended])
        if len(ended) == len(active):
            return
        if ended:
            kept = [b for b in range(len(active)) if b not in ended]
            chosen = limits.ids(kept)
            active, last, state = [active[b] for b in kept], last[chosen], state.keep(chosen)


def finished_hypotheses(steps: Iterable[StepTokens], *, eos_id: int) -> Iterator[list[tuple[int, Hypothesis]]]:
    """Number and hypothesis of each sentence after the step that finished it. The score is the log-probability."""
    tokens: dict[int, list[int]] = defaultdict(list)
    totals: dict[int, float] = defaultdict(float)
    for new_tokens in steps:
        for sentence, token, gain in zip(*new_tokens[:3], strict=True):
            tokens[sentence].append(token)
            totals[sentence] += gain
        if new_tokens.finished:
            yield [(one, _hypothesis(tokens.pop(one), totals.pop(one), eos_id)) for one in new_tokens.finished]


def collect_hypotheses(steps: Iterable[StepTokens], limits: SearchLimits) -> list[Hypothesis]:
    """The hypotheses of all steps, in the order of the sentences."""
    by_sentence = dict(chain.from_iterable(finished_hypotheses(steps, eos_id=limits.eos_id)))
    return [by_sentence[sentence] for sentence in range(limits.sentences)]


def _hypothesis(tokens: list[int], total: float, eos_id: int) -> Hypothesis:
    finished = tokens[-1] == eos_id
    return Hypothesis(tokens[:-1] if finished else tokens, total, total, finished)
