"""One hypothesis a sentence, one word at a time: what greedy search, sampling and streaming share."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .step import AnyState, Hypothesis, Step

Choose = Callable[[Tensor, Sequence[int]], tuple[Tensor, Tensor]]
"""Log-probabilities (N, V), the sentence of each row → those of the words chosen, (N,), and the words, (N,)."""


class Said(NamedTuple):
    """The next word of every sentence that still goes on, one after the other."""

    sentences: list[int]
    words: list[int]
    log_probabilities: list[float]


def walk(
    step: Step[AnyState], state: AnyState, *, choose: Choose, sos_id: int, eos_id: int, max_lengths: Tensor
) -> Iterator[Said]:
    """Say word after word of B sentences; one that said the end sign, or reached its bound, leaves the batch."""
    limits, device = max_lengths.tolist(), max_lengths.device
    alive = list(range(len(limits)))
    last = torch.full_like(max_lengths, sos_id)
    for length in range(1, max(limits) + 1):
        log_probabilities, state = step(last, state)
        gains, last = choose(log_probabilities, alive)
        words = last.tolist()
        yield Said(alive, words, gains.tolist())
        kept = [
            row
            for row, (sentence, word) in enumerate(zip(alive, words, strict=True))
            if word != eos_id and length < limits[sentence]
        ]
        if not kept:
            return
        if len(kept) < len(alive):
            rows = torch.tensor(kept, device=device)
            alive, last, state = [alive[row] for row in kept], last[rows], state.keep(rows)


def gather(steps: Iterator[Said], *, sentences: int, eos_id: int) -> list[Hypothesis]:
    """The sentences that a walk said, in their order. The score is the log-probability."""
    found: list[list[int]] = [[] for _ in range(sentences)]
    totals, finished = [0.0] * sentences, [False] * sentences
    for said in steps:
        for sentence, word, gain in zip(*said, strict=True):
            totals[sentence] += gain
            if word == eos_id:
                finished[sentence] = True
            else:
                found[sentence].append(word)
    return [Hypothesis(ids, total, total, end) for ids, total, end in zip(found, totals, finished, strict=True)]
