"""Put pairs of similar length together, as rectangular tensors (§5.1).

Similar lengths keep padding small. The batches are shuffled afterwards. A large corpus is sorted in windows of
`SORT_WINDOW` pairs, so that planning an epoch takes little memory. The order of an epoch depends only on the seed and
the number of the epoch. To resume, it is therefore enough to know how many batches have been used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import torch
from torch import Tensor

from ..errors import ConfigError
from ..machine.device import move
from .pairs import EncodedPairs, Indices, Pairs

SORT_WINDOW = 2**18  # pairs that are sorted by length together


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Pad rows of ids to the same length. Returns (B, L), int64, or (0, 1) without rows."""
    longest = max(map(len, rows), default=1)
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows], dtype=torch.int64).view(-1, longest)


@dataclass(frozen=True)
class Batch:
    """The pairs of one update. Shapes: source (B, S), target (B, T + 1)."""

    source: Tensor
    target: Tensor

    @property
    def target_in(self) -> Tensor:
        """The input of the decoder: the target without its last token, (B, T)."""
        return self.target[:, :-1]

    @property
    def target_out(self) -> Tensor:
        """The tokens to predict: the target without its first token, (B, T)."""
        return self.target[:, 1:]

    def count_tokens(self, target_pad_id: int) -> int:
        """Count the tokens to predict, without padding."""
        return int((self.target_out != target_pad_id).sum())

    def to(self, device: torch.device) -> Batch:
        """Copy the batch to another device."""
        return Batch(move(self.source, device), move(self.target, device))

    def duplicated(self) -> Batch:
        """Return a batch with all pairs, followed by all pairs again."""
        return Batch(torch.cat([self.source, self.source]), torch.cat([self.target, self.target]))

    def split(self, count: int) -> list[Batch]:
        """Split the pairs into at most `count` batches of nearly equal size. Without pairs there is no batch."""
        if len(self.source) == 0:
            return []
        if count == 1:
            return [self]
        return [Batch(*sides) for sides in zip(self.source.chunk(count), self.target.chunk(count), strict=True)]


def epoch_of_batches(pairs: EncodedPairs, *, batch_tokens: int, seed: int, epoch: int) -> Iterator[Indices]:
    """Yield the pairs of an epoch in batches of at most `batch_tokens` tokens per side, counting padding.

    A pair of weight 2 occurs twice; a pair of weight 0.5 occurs in every other epoch, on average. Refuses a pair that
    is longer than a whole batch. Needs 4 bytes of memory per pair.
    """
    require_large_batches(pairs, batch_tokens)
    rng = np.random.default_rng((seed, epoch))
    indices = _repeat_by_weight(pairs, rng)
    rng.shuffle(indices)
    for begin in range(0, len(indices), SORT_WINDOW):
        cut = _by_length(pairs, indices[begin : begin + SORT_WINDOW], batch_tokens)
        for i in rng.permutation(len(cut)):
            yield cut[i]
        pairs.release_pages()


def require_large_batches(pairs: EncodedPairs, batch_tokens: int) -> None:
    """Refuse an empty corpus, weights that leave an epoch empty, and a pair of more than `batch_tokens` tokens."""
    if len(pairs) == 0:
        raise ConfigError("there are no pairs to train on")
    ends, weights = zip(*pairs.weights or ((len(pairs), 1.0),), strict=True)
    if (expected := float(np.diff(ends, prepend=0) @ weights)) < 1:
        raise ConfigError(f"the weights of data.corpus leave {expected:.2g} pairs an epoch; at least 1 is needed")
    if (longest := pairs.longest()) > batch_tokens:
        raise ConfigError(f"train.batch_tokens must hold the longest sentence, {longest} tokens; got {batch_tokens}")


def _repeat_by_weight(pairs: EncodedPairs, rng: np.random.Generator) -> Indices:
    """Return the index of each pair, repeated as often as the pair occurs in this epoch."""
    everything = np.arange(len(pairs), dtype=np.int32)
    if all(weight == 1 for _, weight in pairs.weights):
        return everything
    repeated = []
    begin = 0
    for end, weight in pairs.weights:
        times, rest = divmod(weight, 1)
        repeated += [everything[begin:end]] * int(times)
        repeated.append(everything[begin:end][rng.random(end - begin) < rest])
        begin = end
    return np.concatenate(repeated)


def _by_length(pairs: EncodedPairs, chosen: Indices, batch_tokens: int) -> list[Indices]:
    """Group pairs into batches, the shortest first. Pairs of equal length keep their order."""
    sizes = np.maximum(pairs.source.lengths(chosen), pairs.target.lengths(chosen))
    order = np.argsort(sizes, kind="stable")
    chosen = chosen[order]
    sizes = sizes[order]
    batches = []
    start = 0
    while start < len(chosen):
        most = min(len(chosen), start + batch_tokens // int(sizes[start]))
        # Lengths increase, so the last pair of a batch is its longest.
        end = bisect_right(range(most), batch_tokens, lo=start, key=lambda last: (last + 1 - start) * int(sizes[last]))
        batches.append(chosen[start:end])
        start = end
    return batches


def batches(
    pairs: EncodedPairs,
    *,
    batch_tokens: int,
    seed: int,
    pad_id: int,
    target_pad_id: int | None = None,
    skip: int = 0,
    part: tuple[int, int] = (0, 1),
) -> Iterator[Batch]:
    """Yield training batches forever, epoch after epoch, without the first `skip` batches.

    Targets are padded with `target_pad_id`, which by default is `pad_id`, as in a shared vocabulary. `part` is (n, k):
    of each batch, take the pairs n, n + k, n + 2k and so on. All k parts then have about the same lengths.
    """
    plans = (epoch_of_batches(pairs, batch_tokens=batch_tokens, seed=seed, epoch=epoch) for epoch in count())
    planned = ((epoch, indices) for epoch, plan in enumerate(plans) for indices in plan)
    for epoch, indices in islice(planned, skip, None):
        yield collate(pairs, indices[part[0] :: part[1]], pad_id=pad_id, target_pad_id=target_pad_id, epoch=epoch)


def batches_by_length(
    pairs: EncodedPairs, *, batch_tokens: int, pad_id: int, target_pad_id: int | None = None
) -> Iterator[Batch]:
    """Yield every pair once, the shortest first, for validation."""
    for chosen in _by_length(pairs, np.arange(len(pairs), dtype=np.int32), batch_tokens):
        yield collate(pairs, chosen, pad_id=pad_id, target_pad_id=target_pad_id)


def collate(
    pairs: EncodedPairs, chosen: Indices, *, pad_id: int, target_pad_id: int | None = None, epoch: int = 0
) -> Batch:
    """Make one batch of the pairs `chosen`. Pairs with `resample` are segmented again for this epoch.

    Batches are planned with the lengths without subword sampling. Sampling lengthens sentences by about a fifth if it
    skips a tenth of the merges.
    """
    ids: Pairs = pairs
    if pairs.resample:
        ids = pairs.resample(chosen, epoch)
        chosen = np.arange(len(chosen), dtype=np.int32)
    source = ids.source.padded(chosen, pad_id)
    target = ids.target.padded(chosen, pad_id if target_pad_id is None else target_pad_id)
    return Batch(torch.from_numpy(source), torch.from_numpy(target))
