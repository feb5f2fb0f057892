"""Which pairs are learned from together, and in what order (§5.1).

Similar lengths go together, so that little of a batch is padding; batches of all lengths then come
in turn. The order of an epoch follows from the seed and the epoch's number alone, so a place in the
data is one number: how many batches came before.
"""

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from .batch import Batch, pad
from .store import EncodedPairs

Indices = NDArray[np.int64]


def epoch_of_batches(pairs: EncodedPairs, *, batch_tokens: int, seed: int, epoch: int) -> list[Indices]:
    """The pairs of one epoch, each in one batch of at most `batch_tokens` tokens a side, padding included.

    Refuses a pair that alone is longer than that.
    """
    longest = np.maximum(pairs.source.lengths, pairs.target.lengths)
    if len(longest) == 0:
        raise ConfigError("there is no pair to train on")
    if longest.max() > batch_tokens:
        raise ConfigError(
            f"train.batch_tokens must hold the longest sentence, {longest.max()} tokens; got {batch_tokens}"
        )
    chance = np.random.default_rng((seed, epoch))
    shuffled = chance.permutation(len(pairs))
    # The sort is stable, so pairs of one length stay shuffled among themselves.
    order = shuffled[np.argsort(longest[shuffled], kind="stable")]
    batches = _cut(order, longest, batch_tokens)
    return [batches[i] for i in chance.permutation(len(batches))]


def _cut(order: Indices, lengths: Indices, batch_tokens: int) -> list[Indices]:
    batches, start = [], 0
    for end in range(1, len(order) + 1):
        # Lengths grow, so the newest pair is the longest of its batch.
        if end == len(order) or (end - start + 1) * lengths[order[end]] > batch_tokens:
            batches.append(order[start:end])
            start = end
    return batches


def batches(pairs: EncodedPairs, *, batch_tokens: int, seed: int, pad_id: int, skip: int = 0) -> Iterator[Batch]:
    """Batches without end, epoch after epoch, from the place after the first `skip`."""
    for epoch in count():
        plan = epoch_of_batches(pairs, batch_tokens=batch_tokens, seed=seed, epoch=epoch)
        for chosen in plan[skip:]:
            yield collate(pairs, chosen, pad_id=pad_id)
        skip = max(0, skip - len(plan))


def in_order(pairs: EncodedPairs, *, batch_tokens: int, pad_id: int) -> Iterator[Batch]:
    """Every pair once, the short ones first: for validation."""
    longest = np.maximum(pairs.source.lengths, pairs.target.lengths)
    for chosen in _cut(np.argsort(longest, kind="stable"), longest, batch_tokens):
        yield collate(pairs, chosen, pad_id=pad_id)


def collate(pairs: EncodedPairs, chosen: Indices, *, pad_id: int) -> Batch:
    """These pairs as one batch."""
    return Batch(
        source=pad([pairs.source[i] for i in chosen], pad_id),
        target=pad([pairs.target[i] for i in chosen], pad_id),
    )
