"""One hypothesis a sentence, one word at a time: what greedy search, sampling and streaming share."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from .step import AnyState, Hypothesis, Step

Choose = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Log-probabilities (N, V) → those of the words chosen, (N,), and the words, (N,)."""


class Said(NamedTuple):
    """The next word of every sentence that still goes on. Shapes: (N,) each."""

    sentences: Tensor
    words: Tensor
    log_probabilities: Tensor


def walk(
    step: Step[AnyState], state: AnyState, *, choose: Choose, sos_id: int, eos_id: int, max_lengths: Tensor
) -> Iterator[Said]:
    """Say word after word of B sentences; one that said the end sign, or reached its bound, leaves the batch."""
    alive = torch.arange(len(max_lengths), device=max_lengths.device)
    last = torch.full_like(alive, sos_id)
    for length in range(1, int(max_lengths.max()) + 1):
        log_probabilities, state = step(last, state)
        gain, last = choose(log_probabilities)
        yield Said(alive, last, gain)
        going_on = (last != eos_id) & (length < max_lengths[alive])
        if not going_on.all():
            (kept,) = going_on.nonzero(as_tuple=True)
            if len(kept) == 0:
                return
            alive, last, state = alive[kept], last[kept], state.keep(kept)


def gather(steps: Iterator[Said], *, sentences: int, eos_id: int) -> list[Hypothesis]:
    """The sentences that a walk said, in their order. The score is the log-probability."""
    found: list[list[int]] = [[] for _ in range(sentences)]
    totals, finished = [0.0] * sentences, [False] * sentences
    for said in steps:
        for sentence, word, gain in zip(*(part.tolist() for part in said), strict=True):
            totals[sentence] += gain
            if word == eos_id:
                finished[sentence] = True
            else:
                found[sentence].append(word)
    return [Hypothesis(ids, total, total, end) for ids, total, end in zip(found, totals, finished, strict=True)]
