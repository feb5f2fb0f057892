"""Prepare the pairs of a run: read, filter, learn a vocabulary, and store the pairs as ids, once."""

import json
from array import array
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ..cluster import block_map, connected
from ..config import CleanConfig, DataConfig
from ..errors import ConfigError, DataError
from ..files import locked, write_whole
from ..text.letter_case import CaseStatistics
from ..text.spans import CopyStatistics
from ..text.vocabulary import Vocabulary, train_vocabulary
from .blocks import BlockEncoder, PairsToEncode, clean_block, columns
from .filter import select_pairs
from .prepared import open_prepared, remove_abandoned, replacing_folder, stored_provenance, write_prepared
from .prepared_data import PreparedData
from .provenance import compute_provenance, describe_difference, fingerprint
from .read import CHUNK, ProgressCallback, ReadPairs, read_part, stride
from .report import DataReport
from .store import Indices, open_writers

LEARN_FROM = 1_000_000  # pairs, evenly spaced, for learning subwords


def prepare(
    data: DataConfig,
    clean: CleanConfig,
    folder: Path,
    *,
    max_length: int,
    vocabulary: Vocabulary | None = None,
    resume: bool = False,
    progress: ProgressCallback = lambda what, done, total: None,
    ray: str = "",
) -> PreparedData:
    """Read, clean, split and encode the pairs that `data` names, or open them if an earlier call prepared the same.

    A pair of more than `max_length` tokens on a side is dropped. `vocabulary`, if set, is used instead of
    one learned here. With `data.cache_dir`, a folder under it is used instead of `folder`. The folder is written whole
    or not at all. `progress` is called with the progress. With `resume`, refuses to replace pairs of another
    provenance, and lists the differences. `ray`, the address of a Ray cluster or "local", lets its processes
    clean and encode; the files are the same.
    """
    if not any(corpus.train for corpus in data.corpora()):
        raise ConfigError("data.train is missing; name a file of pairs, or two aligned files, [source, target]")
    provenance = compute_provenance(data, clean, max_length, vocabulary)
    folder = prepared_folder(data, folder, provenance)
    stored = stored_provenance(folder)
    if resume and stored and stored != provenance:
        raise DataError(f"{folder} was prepared from other data or settings: {describe_difference(stored, provenance)}")

    def build_unless_there() -> None:
        if stored_provenance(folder) != provenance:
            with replacing_folder(folder) as growing, connected(ray):
                _build(data, clean, growing, provenance, vocabulary, max_length=max_length, progress=progress, ray=ray)

    if data.cache_dir and not stored:
        progress("waiting for data.cache_dir", 0, None)  # another run may be preparing the same pairs
        with locked(folder, what=str(folder), wait=True):
            build_unless_there()
        remove_abandoned(folder.parent)
    else:
        build_unless_there()
    return open_prepared(folder, data, max_length=max_length)


def prepared_folder(data: DataConfig, folder: Path, provenance: dict[str, str]) -> Path:
    """Where pairs of this provenance are: in `folder`, or in the one for them under `data.cache_dir`."""
    return Path(data.cache_dir, fingerprint(provenance)) if data.cache_dir else folder


def _build(
    data: DataConfig,
    clean: CleanConfig,
    folder: Path,
    provenance: dict[str, str],
    vocabulary: Vocabulary | None,
    *,
    max_length: int,
    progress: ProgressCallback,
    ray: str,
) -> None:
    report = DataReport()
    with block_map(partial(clean_block, clean=clean), ray) as cleaned:
        train = read_part("train", data, clean, folder, report, cleaned=cleaned, progress=progress)
    valid, test = (read_part(part, data, clean, folder, report) for part in ("valid", "test"))
    selected = select_pairs(data, clean, train, valid, test, report)
    advice = ""
    if vocabulary is None:
        if data.alphabet:
            advice = "; add it to data.alphabet, or leave that out"
        progress("learning a vocabulary", 0, None)
        vocabulary = _train_vocabulary(data, train, selected.train)
    sizes = [len(vocabulary.source), len(vocabulary.target)]
    report.vocabulary = sizes[:1] if vocabulary.joint else sizes
    dtype = "uint16" if max(sizes) <= 2**16 else "int32"
    encoder = partial(BlockEncoder, vocabulary=vocabulary, max_length=max_length, dtype=dtype, advice=advice)
    weights = _write_ids(train, selected.train, encoder("train"), folder, report, progress, ray)
    if not report.train.used:
        raise DataError("data.train has no pair to use: " + "; ".join(map(str.strip, report.train.lines())))
    if selected.valid:
        block = PairsToEncode(columns(selected.valid), range(len(selected.valid)))
        encoded = encoder("valid")(block)
        report.valid.used = len(encoded.rows)
        report.valid.dropped["max_length"].merge(encoded.too_long)
        if not report.valid.used:
            raise DataError(
                f"data.valid has no pair of at most model.max_length={max_length} tokens: {len(selected.valid)} read"
            )
    for name, pairs in (("valid", selected.valid), ("test", selected.test)):
        write_whole(folder / f"{name}.jsonl", "".join(f"{json.dumps(pair)}\n" for pair in pairs))
    vocabulary.save(folder)
    for file in folder.glob("*.texts.*"):
        if not (data.subword_sampling and file.name.startswith("train.")):
            file.unlink()
    copy_statistics = CopyStatistics.from_pairs(train.pairs(selected.train))
    case_statistics = CaseStatistics.from_pairs(train.pairs(selected.train))
    write_prepared(folder, provenance, report, copy_statistics, case_statistics, dtype=dtype, weights=weights)


def _train_vocabulary(data: DataConfig, train: ReadPairs, indices: Indices) -> Vocabulary:
    count = len(indices)
    if {"bpe", "unigram", "words"}.issuperset(data.vocabularies()):  # the others need every letter
        indices = indices[:: stride(count, LEARN_FROM)]
    return train_vocabulary(
        data,
        lambda: (pair.source for pair in train.pairs(indices)),
        lambda: (pair.target for pair in train.pairs(indices)),
        pairs=count,
    )


def _write_ids(
    train: ReadPairs,
    indices: Indices,
    encoder: BlockEncoder,
    folder: Path,
    report: DataReport,
    progress: ProgressCallback,
    ray: str,
) -> list[tuple[int, float]]:
    """Write the pairs with these indices as ids; returns where each corpus ends among them, and its weight."""
    weights: list[tuple[int, float]] = []
    begin = 0
    rows = array("i")
    with open_writers(folder, "train") as (source, target), block_map(encoder, ray) as encoded:
        for (end, weight, *_), counts in zip(train.ends, report.sources, strict=True):
            before = len(rows)
            first, last = np.searchsorted(indices, [begin, end])
            for block in encoded(_blocks(train, indices[first:last])):
                source.add(block.source)
                target.add(block.target)
                rows.extend(block.rows)
                report.train.dropped["max_length"].merge(block.too_long)
                progress("encoding", len(rows), len(indices))
            counts.used = len(rows) - before
            weights.append((len(rows), weight))
            begin = end
    report.train.used = len(rows)
    write_whole(folder / "train.rows", rows.tobytes())
    return weights


def _blocks(train: ReadPairs, indices: Indices) -> Iterator[PairsToEncode]:
    for begin in range(0, len(indices), CHUNK):
        chunk = indices[begin : begin + CHUNK]
        yield PairsToEncode(columns(train.pairs(chunk)), chunk.tolist())
