"""Pairs as texts → pairs as ids: in memory, or on disk, a block at a time."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..cluster import block_map
from ..config import DataConfig
from ..errors import DataError, InputError
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary
from .clean import CleanPairs, ProgressCallback, as_example
from .pairs import EncodedPairs, Indices, Pair, Pairs, Side, writing_pairs
from .report import DataReport, Part, RuleCount


def encode_within(
    pairs: Sequence[Pair], vocabulary: Vocabulary, max_length: int, dtype: str = "int32"
) -> tuple[Pairs, list[int]]:
    """The ids of the pairs that have no empty side and at most `max_length` ids on either, and the indices of these."""
    sources = vocabulary.source.encode_all([pair.source for pair in pairs])
    targets = vocabulary.target.encode_all([pair.target for pair in pairs])
    kept = [i for i, pair in enumerate(pairs) if all(pair) and max(len(sources[i]), len(targets[i])) <= max_length]
    source, target = (Side.from_sentences([ids[i] for i in kept], dtype) for ids in (sources, targets))
    return Pairs(source, target), kept


def encode_pairs(pairs: Sequence[Pair], vocabulary: Vocabulary, *, max_length: int) -> EncodedPairs:
    """Pairs as ids, in memory, without those that `encode_within` does not keep."""
    ids, _ = encode_within(pairs, vocabulary, max_length)
    return EncodedPairs(ids.source, ids.target)


def encode_block(
    block: Pairs, *, part: Part, vocabulary: Vocabulary, max_length: int, dtype: str, advice: str = ""
) -> tuple[Pairs, list[int], RuleCount]:
    """Encode a block of pairs as ids of type `dtype`; also count those that `encode_within` does not keep.

    `part` begins and `advice` ends the message about a text that the vocabulary cannot encode.
    """
    pairs = list(block.texts())
    try:
        ids, kept = encode_within(pairs, vocabulary, max_length, dtype)
    except InputError as error:
        raise DataError(f"data.{part}: {error}{advice}") from error
    too_long = RuleCount()
    for i in sorted(set(range(len(pairs))).difference(kept)):
        too_long.add(as_example(pairs[i]))
    return ids, kept, too_long


def write_ids(
    train: CleanPairs,
    indices: Indices,
    encoder: Callable[[Pairs], tuple[Pairs, list[int], RuleCount]],
    folder: Path,
    report: DataReport,
    *,
    progress: ProgressCallback,
    ray: str,
) -> list[tuple[int, float]]:
    """Write the pairs with these indices as ids; returns where each corpus ends among them, and its weight."""
    weights: list[tuple[int, float]] = []
    begin, rows = 0, array("i")  # the index of each pair that is written
    with writing_pairs(folder, "train") as write, block_map(encoder, ray) as encoded:
        for (end, weight, *_), counts in zip(train.ends, report.sources, strict=True):
            before, done = len(rows), 0
            corpus = indices[slice(*np.searchsorted(indices, [begin, end]))]
            for ids, kept, too_long in encoded(train.chunks(corpus)):
                write(ids)
                rows.extend(corpus[done:][kept])
                done += len(kept) + too_long.count
                report.train.dropped["max_length"].merge(too_long)
                progress("encoding", len(rows), len(indices))
            counts.used = len(rows) - before
            weights.append((len(rows), weight))
            begin = end
    report.train.used = len(rows)
    (folder / "train.rows").write_bytes(rows.tobytes())
    return weights


def open_training(
    folder: Path,
    data: DataConfig,
    vocabulary: Vocabulary,
    max_length: int,
    dtype: str,
    weights: Sequence[tuple[int, float]],
) -> EncodedPairs:
    """The pairs that `write_ids` wrote, with the `weights` that it returned; with subword sampling, if `data` has it.

    A segmentation too long for the model is replaced by the usual one.
    """
    ids = Pairs.open(folder, "train", dtype)
    train = EncodedPairs(ids.source, ids.target, tuple((end, weight) for end, weight in weights))
    if not data.subword_sampling:
        return train
    texts, rows = Pairs.open(folder, "train.texts", "uint8"), np.fromfile(folder / "train.rows", np.int32)

    def sampler(side: int, texts: Side, tokenizer: Tokenizer) -> Callable[[Indices, int], Side]:
        sampled = tokenizer.with_sampling(strength=data.subword_sampling, seed=data.seed)

        def sentences(indices: Indices, epoch: int) -> Iterator[list[int]]:
            for row, text in zip(indices.tolist(), texts.select(indices).texts(), strict=True):
                ids = sampled(text, (epoch << 32) + 2 * row + side)
                yield ids if len(ids) <= max_length else tokenizer.encode(text)

        return lambda indices, epoch: Side.from_sentences(list(sentences(indices, epoch)))

    source, target = sampler(0, texts.source, vocabulary.source), sampler(1, texts.target, vocabulary.target)
    return replace(
        train, resample=lambda chosen, epoch: Pairs(source(rows[chosen], epoch), target(rows[chosen], epoch))
    )
