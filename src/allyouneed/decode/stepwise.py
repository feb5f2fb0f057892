"""One hypothesis a sentence, one token at a time: what greedy search, sampling and streaming share."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from ..lazy import Tensor
from .step import Admit, AnyState, Hypothesis, SearchLimits, Step, admit_nobody, insert_newcomers

TokenChooser = Callable[[Tensor, Sequence[int]], tuple[Tensor, Tensor]]
"""Log-probabilities (N, V) and the sentence of each row → those of the chosen tokens, (N,), and the tokens, (N,)."""


class StepTokens(NamedTuple):
    """The next token of each sentence that is still active, side by side; those `finished` get no more."""

    sentences: list[int]
    tokens: list[int]
    log_probabilities: list[float]
    finished: list[int]


class _Row(NamedTuple):
    number: int
    last_step: int
    is_cancelled: Callable[[], bool]

    def goes_on(self, step: int) -> bool:
        return step < self.last_step and not self.is_cancelled()


def generate_stepwise(
    step: Step[AnyState],
    state: AnyState,
    limits: SearchLimits,
    *,
    choose: TokenChooser,
    admit: Admit[AnyState] = admit_nobody,
) -> Iterator[StepTokens]:
    """Write B sentences token by token. One that has ended, reached its limit or was cancelled leaves the batch.

    Those that `admit` lets join are numbered in the order in which they come, after the first B.
    """
    steps, count = 0, limits.sentences
    rows = _start_rows(0, limits, steps)
    last = limits.ids([limits.sos_id] * count)
    while True:
        log_probabilities, state = step(last, state)
        steps += 1
        active = [row.number for row in rows]
        gains, last = choose(log_probabilities, active)
        tokens = last.tolist()
        ended = [
            b
            for b, (row, token) in enumerate(zip(rows, tokens, strict=True))
            if token == limits.eos_id or not row.goes_on(steps)
        ]
        yield StepTokens(active, tokens, gains.tolist(), [active[b] for b in ended])
        if newcomers := admit(len(rows) - len(ended)):
            joining = _start_rows(count, newcomers.limits, steps)
            count += len(joining)
            state = insert_newcomers(state, newcomers, rows, ended, joining)
            start = last.new_full((len(rows),), limits.sos_id)
            start[: len(last)] = last
            start[ended[: len(joining)]] = limits.sos_id
            last, ended = start, ended[len(joining) :]
        if len(ended) == len(rows):
            return
        if ended:
            kept = [b for b in range(len(rows)) if b not in ended]
            chosen = limits.ids(kept)
            rows, last, state = [rows[b] for b in kept], last[chosen], state.keep(chosen)


def _start_rows(first: int, limits: SearchLimits, steps: int) -> list[_Row]:
    return [
        _Row(first + b, steps + max_length, partial(limits.is_cancelled, b))
        for b, max_length in enumerate(limits.max_lengths.tolist())
    ]


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
