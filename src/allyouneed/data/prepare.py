"""Prepare the pairs of a run once: read, clean and split them, learn a vocabulary, and store the pairs as ids."""

from array import array
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from ..config import CleanConfig, DataConfig
from ..errors import ConfigError, DataError, InputError, refused
from ..machine.checksums import crc32_checksum
from ..machine.cluster import block_map, connected
from ..machine.files import to_json, to_json_lines, unused, write_whole
from ..text.letter_case import CaseStatistics
from ..text.spans import CopyStatistics
from ..text.vocabulary import Vocabulary
from ..text.vocabulary_training import train_vocabulary
from .clean import CleanPairs, ProgressCallback, as_example, read_part
from .filter import select_pairs
from .pairs import Indices, Pairs, encode_within, stride, writing_pairs
from .prepared import PreparedData
from .prepared_files import open_prepared, prepared_folder, replacing_folder, stored_provenance
from .provenance import compute_provenance, describe_difference
from .report import DataReport, Part, RuleCount

LEARN_FROM = 1_000_000  # pairs, evenly spaced, from which subwords are learned


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
    """Prepare the pairs that `data` names, or open them if an earlier call has prepared the same pairs.

    Pairs are read, cleaned, split and encoded; a pair with more than `max_length` tokens on a side is dropped.
    `vocabulary`, if set, is used instead of learning a new vocabulary. The result is stored in `folder`, or in a folder
    under `data.cache_dir` if that is set; the folder is written completely or not at all. `progress` is called as work
    advances. With `resume`, refuses to replace pairs with a different provenance, and lists the differences. `ray` is
    the address of a Ray cluster, or "local", whose processes clean and encode; the files are the same.
    """
    if not any(corpus.train for corpus in data.corpora()):
        raise ConfigError("data.train is missing; name a file of pairs, or two aligned files, [source, target]")
    provenance = compute_provenance(data, clean, max_length, vocabulary)
    folder = prepared_folder(data, folder, provenance)
    stored = stored_provenance(folder)
    if resume and stored and stored != provenance:
        raise DataError(
            f"{folder} was prepared from other data or settings: {describe_difference(stored, provenance)}"
        ).mended_by("--output", str(unused(folder.parent)))
    if stored != provenance:
        if data.cache_dir:
            progress("waiting for data.cache_dir", 0, None)  # another run may be preparing the same pairs
        with replacing_folder(folder, provenance) as growing:
            if growing:
                with connected(ray):
                    _build(data, clean, growing, provenance, vocabulary, max_length, progress, ray)
    return open_prepared(folder, data, max_length=max_length)


def _build(
    data: DataConfig,
    clean: CleanConfig,
    folder: Path,
    provenance: dict[str, str],
    vocabulary: Vocabulary | None,
    max_length: int,
    progress: ProgressCallback,
    ray: str,
) -> None:
    report = DataReport()
    train = read_part("train", data, clean, folder, report, progress=progress, ray=ray)
    valid, test = (read_part(part, data, clean, folder, report) for part in ("valid", "test"))
    selected = select_pairs(data, clean, train, valid, test, report)
    advice = ""
    if vocabulary is None:
        if data.alphabet:
            advice = "add it to data.alphabet, or leave that out"
        progress("learning a vocabulary", 0, None)
        from_some = {"bpe", "unigram", "words"}.issuperset(data.vocabularies())  # other kinds need every letter
        learned = selected.train[:: stride(len(selected.train), LEARN_FROM) if from_some else 1]
        vocabulary = train_vocabulary(
            data,
            lambda: (pair.source for pair in train.texts(learned)),
            lambda: (pair.target for pair in train.texts(learned)),
            pairs=len(selected.train),
        )
    sizes = [len(vocabulary.source), len(vocabulary.target)]
    report.vocabulary = sizes[:1] if vocabulary.joint else sizes
    dtype = "uint16" if max(sizes) <= 2**16 else "int32"
    encode = partial(_encode_block, vocabulary=vocabulary, max_length=max_length, dtype=dtype, advice=advice)
    weights = _write_ids(
        train, selected.train, partial(encode, part="train"), folder, report, progress=progress, ray=ray
    )
    if not report.train.used:
        raise DataError("data.train has no usable pairs: " + "; ".join(map(str.strip, report.train.lines())))
    if selected.valid:
        ids, _, too_long = encode(Pairs.from_texts(selected.valid), part="valid")
        report.valid.used = len(ids)
        report.valid.dropped["max_length"].merge(too_long)
        if not report.valid.used:
            raise DataError(
                f"data.valid has no pair of at most model.max_length={max_length} tokens: {len(selected.valid)} read"
            )
    statistics = {
        "copy_statistics": asdict(CopyStatistics.from_pairs(train.texts(selected.train))),
        "case_statistics": asdict(CaseStatistics.from_pairs(train.texts(selected.train))),
    }
    for file in folder.glob("*.texts.*"):
        if not (data.subword_sampling and file.name.startswith("train.")):
            file.unlink()
    vocabulary.save(folder)
    write_whole(folder / "valid.jsonl", to_json_lines(selected.valid))
    write_whole(folder / "test.jsonl", to_json_lines(selected.test))
    table = {"provenance": provenance, "dtype": dtype, "weights": weights, **statistics, "report": report.table()}
    table["checksums"] = {path.name: crc32_checksum(path) for path in sorted(folder.iterdir())}
    write_whole(folder / "prepared.json", to_json(table, indent=2) + "\n")


def _encode_block(
    block: Pairs, *, part: Part, vocabulary: Vocabulary, max_length: int, dtype: str, advice: str = ""
) -> tuple[Pairs, list[int], RuleCount]:
    """Encode one block of pairs as ids of type `dtype`, and count the pairs that `encode_within` leaves out.

    The message about a text that the vocabulary cannot encode begins with `part` and ends with `advice`.
    """
    pairs = list(block.texts())
    with refused(DataError, f"data.{part}", InputError, remedy=advice):
        ids, kept = encode_within(pairs, vocabulary, max_length, dtype)
    too_long = RuleCount()
    for i in sorted(set(range(len(pairs))).difference(kept)):
        too_long.add(as_example(pairs[i]))
    return ids, kept, too_long


def _write_ids(
    train: CleanPairs,
    indices: Indices,
    encoder: Callable[[Pairs], tuple[Pairs, list[int], RuleCount]],
    folder: Path,
    report: DataReport,
    *,
    progress: ProgressCallback,
    ray: str,
) -> list[tuple[int, float]]:
    """Write the pairs with these indices as ids. Returns, for each corpus, where its pairs end and its weight."""
    weights: list[tuple[int, float]] = []
    begin = 0
    rows = array("i")  # the index of each pair that is written
    with writing_pairs(folder, "train") as write, block_map(encoder, ray) as encoded:
        for (end, weight, *_), counts in zip(train.ends, report.sources, strict=True):
            before = len(rows)
            done = 0
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
