"""One hypothesis a sentence, one token at a time: what greedy search, sampling and streaming share."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .step import AnyState, Hypothesis, SearchLimits, Step

TokenChooser = Callable[[Tensor, Sequence[int]], tuple[Tensor, Tensor]]
"""Log-probabilities (N, V) and the sentence of each row → those of the chosen tokens, (N,), and the tokens, (N,)."""


class StepTokens(NamedTuple):
    """The next token of each sentence that is still active, side by side."""

    sentences: list[int]
    tokens: list[int]
    log_probabilities: list[float]


def generate_stepwise(
    step: Step[AnyState], state: AnyState, limits: SearchLimits, *, choose: TokenChooser
) -> Iterator[StepTokens]:
    """Write B sentences token by token. One that has ended, reached its limit or was cancelled leaves the batch."""
    max_lengths = limits.max_lengths.tolist()
    active = list(range(len(max_lengths)))
    last = torch.full_like(limits.max_lengths, limits.sos_id)
    for length in range(1, limits.longest + 1):
        log_probabilities, state = step(last, state)
        gains, last = choose(log_probabilities, active)
        tokens = last.tolist()
        yield StepTokens(active, tokens, gains.tolist())
        kept = [
            row
            for row, (sentence, token) in enumerate(zip(active, tokens, strict=True))
            if token != limits.eos_id and length < max_lengths[sentence] and not limits.is_cancelled(sentence)
        ]
        if not kept:
            return
        if len(kept) < len(active):
            rows = torch.tensor(kept, device=limits.device)
            active, last, state = [active[row] for row in kept], last[rows], state.keep(rows)


def collect_hypotheses(steps: Iterator[StepTokens], limits: SearchLimits) -> list[Hypothesis]:
    """The hypotheses of all steps, in the order of the sentences. The score is the log-probability."""
    ids_by_sentence: list[list[int]] = [[] for _ in range(limits.sentences)]
    totals, finished = [0.0] * limits.sentences, [False] * limits.sentences
    for new_tokens in steps:
        for sentence, token, gain in zip(*new_tokens, strict=True):
            totals[sentence] += gain
            if token == limits.eos_id:
                finished[sentence] = True
            else:
                ids_by_sentence[sentence].append(token)
    return [
        Hypothesis(ids, total, total, end) for ids, total, end in zip(ids_by_sentence, totals, finished, strict=True)
    ]
