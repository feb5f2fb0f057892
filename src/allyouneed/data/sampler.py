"""Which pairs are learned from together, and in what order (§5.1).

Similar lengths go together, so that little of a batch is padding; batches of all lengths then come
in turn. A large corpus is walked window by window, each sorted for itself, so that a plan takes hardly
any memory. The order of an epoch follows from the seed and the epoch's number alone, so a place in the
data is one number: how many batches came before.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from .batch import Batch, pad
from .store import EncodedPairs

Indices = NDArray[np.int32]

WINDOW = 2**18  # pairs that are sorted by length together


def epoch_of_batches(pairs: EncodedPairs, *, batch_tokens: int, seed: int, epoch: int) -> Iterator[Indices]:
    """The pairs of one epoch, each in one batch of at most `batch_tokens` tokens a side, padding included.

    A pair of weight 2 comes twice; of weight 0.5, in every other epoch on average. Refuses a pair that
    alone is longer than a batch. Needs 4 bytes of memory a pair.
    """
    if len(pairs) == 0:
        raise ConfigError("there is no pair to train on")
    if (longest := max(pairs.source.length_quantile(1), pairs.target.length_quantile(1))) > batch_tokens:
        raise ConfigError(f"train.batch_tokens must hold the longest sentence, {longest} tokens; got {batch_tokens}")
    chance = np.random.default_rng((seed, epoch))
    shown = _repeat_by_weight(pairs, chance)
    chance.shuffle(shown)
    for begin in range(0, len(shown), WINDOW):
        cut = _by_length(pairs, shown[begin : begin + WINDOW], batch_tokens)
        for i in chance.permutation(len(cut)):
            yield cut[i]
        pairs.source.release_pages()
        pairs.target.release_pages()


def _repeat_by_weight(pairs: EncodedPairs, chance: np.random.Generator) -> Indices:
    """Each pair as often as an epoch shows it."""
    everyone = np.arange(len(pairs), dtype=np.int32)
    if all(weight == 1 for _, weight in pairs.weights):
        return everyone
    shown, begin = [], 0
    for end, weight in pairs.weights:
        times, rest = divmod(weight, 1)
        shown += [everyone[begin:end]] * int(times)
        shown.append(everyone[begin:end][chance.random(end - begin) < rest])
        begin = end
    return np.concatenate(shown)


def _by_length(pairs: EncodedPairs, chosen: Indices, batch_tokens: int) -> list[Indices]:
    """Some pairs from the shortest to the longest, in batches; those of one length stay in their order."""
    sizes = np.maximum(pairs.source.lengths(chosen), pairs.target.lengths(chosen))
    order = np.argsort(sizes, kind="stable")
    chosen, sizes = chosen[order], sizes[order]
    batches, start = [], 0
    while start < len(chosen):
        most = min(len(chosen), start + batch_tokens // int(sizes[start]))
        # Lengths grow, so the last pair is the longest of its batch.
        end = bisect_right(range(most), batch_tokens, lo=start, key=lambda last: (last + 1 - start) * int(sizes[last]))
        batches.append(chosen[start:end])
        start = end
    return batches


def batches(
    pairs: EncodedPairs, *, batch_tokens: int, seed: int, pad_id: int, target_pad_id: int | None = None, skip: int = 0
) -> Iterator[Batch]:
    """Batches without end, epoch after epoch, from the one after the first `skip`.

    Targets are padded with `target_pad_id`, or with `pad_id` where both sides share a vocabulary.
    """
    plans = (epoch_of_batches(pairs, batch_tokens=batch_tokens, seed=seed, epoch=epoch) for epoch in count())
    places = ((epoch, chosen) for epoch, plan in enumerate(plans) for chosen in plan)
    for epoch, chosen in islice(places, skip, None):
        yield collate(pairs, chosen, pad_id=pad_id, target_pad_id=target_pad_id, epoch=epoch)


def batches_by_length(
    pairs: EncodedPairs, *, batch_tokens: int, pad_id: int, target_pad_id: int | None = None
) -> Iterator[Batch]:
    """Every pair once, the short ones first: for validation."""
    for chosen in _by_length(pairs, np.arange(len(pairs), dtype=np.int32), batch_tokens):
        yield collate(pairs, chosen, pad_id=pad_id, target_pad_id=target_pad_id)


def collate(
    pairs: EncodedPairs, chosen: Indices, *, pad_id: int, target_pad_id: int | None = None, epoch: int = 0
) -> Batch:
    """These pairs as one batch, spelled anew in every epoch if they are to be.

    A batch is planned by the usual spelling; one by chance is longer, by about a fifth if a tenth of the merges
    is left out.
    """
    if pairs.resample:
        sources, targets = pairs.resample(chosen.tolist(), epoch)
    else:
        sources, targets = [pairs.source[i] for i in chosen], [pairs.target[i] for i in chosen]
    return Batch(source=pad(sources, pad_id), target=pad(targets, pad_id if target_pad_id is None else target_pad_id))
