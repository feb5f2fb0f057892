"""One hypothesis a sentence, one word at a time: what greedy search, sampling and streaming share."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .step import AnyState, Hypothesis, Step

TokenChooser = Callable[[Tensor, Sequence[int]], tuple[Tensor, Tensor]]
"""Log-probabilities (N, V), the sentence of each row → those of the words chosen, (N,), and the words, (N,)."""


class StepTokens(NamedTuple):
    """The next word of every sentence that still goes on, one after the other."""

    sentences: list[int]
    tokens: list[int]
    log_probabilities: list[float]


def generate_stepwise(
    step: Step[AnyState], state: AnyState, *, choose: TokenChooser, sos_id: int, eos_id: int, max_lengths: Tensor
) -> Iterator[StepTokens]:
    """Say word after word of B sentences; one that said the end sign, or reached its bound, leaves the batch."""
    limits, device = max_lengths.tolist(), max_lengths.device
    active = list(range(len(limits)))
    last = torch.full_like(max_lengths, sos_id)
    for length in range(1, max(limits) + 1):
        log_probabilities, state = step(last, state)
        gains, last = choose(log_probabilities, active)
        words = last.tolist()
        yield StepTokens(active, words, gains.tolist())
        kept = [
            row
            for row, (sentence, word) in enumerate(zip(active, words, strict=True))
            if word != eos_id and length < limits[sentence]
        ]
        if not kept:
            return
        if len(kept) < len(active):
            rows = torch.tensor(kept, device=device)
            active, last, state = [active[row] for row in kept], last[rows], state.keep(rows)


def collect_hypotheses(steps: Iterator[StepTokens], *, sentences: int, eos_id: int) -> list[Hypothesis]:
    """The hypotheses of all steps, in the order of the sentences. The score is the log-probability."""
    ids_by_sentence: list[list[int]] = [[] for _ in range(sentences)]
    totals, finished = [0.0] * sentences, [False] * sentences
    for new_tokens in steps:
        for sentence, word, gain in zip(*new_tokens, strict=True):
            totals[sentence] += gain
            if word == eos_id:
                finished[sentence] = True
            else:
                ids_by_sentence[sentence].append(word)
    return [
        Hypothesis(ids, total, total, end) for ids, total, end in zip(ids_by_sentence, totals, finished, strict=True)
    ]
