"""The folder of prepared pairs, and how it is opened.

prepared.json             the provenance of the pairs and the report on them; written last
tokenizer.json            the vocabulary, and tokenizer.target.json if the target has another
train.source.ids, …       the pairs to train on, as ids (data/store.py)
train.texts.source.ids, … all pairs that were read, as texts, if they are segmented differently in every epoch
train.rows                the index of each training pair among these
valid.jsonl, test.jsonl   the pairs held out, as texts
"""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..checksums import crc32_checksum
from ..config import DataConfig
from ..errors import AllYouNeedError, DataError, OutputError
from ..files import locked, parse_json, read_json_lines, read_whole, refusing_errors, to_json, write_whole
from ..text.letter_case import CaseStatistics
from ..text.spans import CopyStatistics
from ..text.vocabulary import Vocabulary
from .pair import Pair
from .prepared_data import PreparedData
from .report import DataReport
from .store import EncodedPairs, Side, encode_pairs, open_sides

# The names of all files of the folder.
PREPARED = (
    "prepared.json", "tokenizer.json", "tokenizer.target.json", "train.rows", "valid.jsonl", "test.jsonl",
    "train.*.ids", "train.*.starts", "valid.texts.*", "test.texts.*", ".*.partial",
)  # fmt: skip

_ABANDONED = re.compile(r"\.([0-9a-f]{16})\.partial")  # a folder named by the fingerprint of its pairs


def open_prepared(folder: Path, data: DataConfig, *, max_length: int) -> PreparedData:
    """The pairs that are prepared in a folder. Refuses a folder whose files have changed."""
    try:
        return _open(folder, data, max_length)
    except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, AllYouNeedError):
            raise
        raise _damaged(folder, str(error)) from error


def _open(folder: Path, data: DataConfig, max_length: int) -> PreparedData:
    table: dict[str, Any] = parse_json(read_whole(folder / "prepared.json"))
    _refuse_damaged(folder, table["checksums"])
    report = DataReport.from_table(table["report"])
    vocabulary = Vocabulary.load(folder, joint=len(report.vocabulary) == 1)
    valid, test = (_read_pairs(folder / f"{part}.jsonl") for part in ("valid", "test"))
    train = EncodedPairs(
        *open_sides(folder, "train", table["dtype"]),
        weights=tuple((end, weight) for end, weight in table["weights"]),
        resample=_resampler(folder, vocabulary, data, max_length) if data.subword_sampling else None,
    )
    encoded = encode_pairs(valid, vocabulary.source, vocabulary.target, max_length=max_length) if valid else None
    lengths = map(len, vocabulary.source.encode_all([pair.source for pair in valid]))
    readable = [pair for pair, length in zip(valid, lengths, strict=True) if length <= max_length]
    copies = CopyStatistics.from_table(table["copy_statistics"])
    case = CaseStatistics.from_table(table["case_statistics"])
    return PreparedData(train, encoded, valid, readable, test, vocabulary, report, copies, case, table["provenance"])


def write_prepared(
    folder: Path,
    provenance: dict[str, str],
    report: DataReport,
    copy_statistics: CopyStatistics,
    case_statistics: CaseStatistics,
    *,
    dtype: str,
    weights: list[tuple[int, float]],
) -> None:
    """Write `prepared.json` beside the files that are in the folder already, with a checksum of each of these."""
    table = {
        "provenance": provenance,
        "dtype": dtype,
        "weights": weights,
        "copy_statistics": asdict(copy_statistics),
        "case_statistics": asdict(case_statistics),
        "report": report.table(),
        "checksums": {path.name: crc32_checksum(path) for path in sorted(folder.iterdir())},
    }
    write_whole(folder / "prepared.json", to_json(table, indent=2) + "\n")


def stored_provenance(folder: Path) -> dict[str, str] | None:
    """The provenance of the pairs in a folder; None if there are none, or only those of an earlier version."""
    path = folder / "prepared.json"
    if not path.exists():
        return None
    try:
        table: dict[str, Any] = parse_json(read_whole(path))
        provenance: dict[str, str] | None = table.get("provenance")
        if not isinstance(provenance, dict | None):
            raise TypeError("provenance is not a table")
    except (OSError, AttributeError, TypeError, ValueError) as error:
        raise _damaged(folder, f"{path.name}: {error}") from error
    return provenance


def read_test_pairs(folder: Path) -> list[Pair]:
    """The held-out test pairs of a folder of prepared pairs; none if it has no such file."""
    path = folder / "test.jsonl"
    return _read_pairs(path) if path.exists() else []


def open_training_ids(folder: Path) -> tuple[Side, Side] | None:
    """The ids of both sides of the training pairs in a folder of prepared pairs; None if there are none."""
    if not (folder / "prepared.json").exists():
        return None
    try:
        sides = open_sides(folder, "train", parse_json(read_whole(folder / "prepared.json"))["dtype"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise _damaged(folder, str(error)) from error
    return sides if len(sides[0]) else None


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """An empty folder that replaces `folder` when the block ends without an exception.

    Refuses to replace a folder that has other files than those of prepared pairs.
    """
    alone = not folder.parent.exists()
    with refusing_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    _refuse_unrelated(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        with refusing_errors(folder):
            yield partial
            shutil.rmtree(folder, ignore_errors=True)
            partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if alone and not folder.exists():
            folder.parent.rmdir()


def remove_abandoned(cache: Path) -> None:
    """Remove what killed processes were preparing in a folder for several runs: nobody holds its lock."""
    for partial in cache.glob(".*.partial"):
        if name := _ABANDONED.fullmatch(partial.name):
            with suppress(OutputError), locked(cache / name[1], what=str(partial)):
                shutil.rmtree(partial, ignore_errors=True)


def _resampler(
    folder: Path, vocabulary: Vocabulary, data: DataConfig, max_length: int
) -> Callable[[Sequence[int], int], tuple[list[list[int]], list[list[int]]]]:
    """Segment training pairs by subword sampling, the same in the same epoch.

    A segmentation too long for the model is replaced by the usual one.
    """
    texts = open_sides(folder, "train.texts", "uint8")
    rows = np.fromfile(folder / "train.rows", np.int32)
    plain = (vocabulary.source, vocabulary.target)
    sampled = [tokenizer.with_sampling(strength=data.subword_sampling, seed=data.seed) for tokenizer in plain]

    def segment(side: int, indices: Sequence[int], epoch: int) -> list[list[int]]:
        sentences = []
        for i in indices:
            row = int(rows[i])
            text = texts[side].text(row)
            ids = sampled[side](text, (epoch << 32) + 2 * row + side)
            sentences.append(ids if len(ids) <= max_length else plain[side].encode(text))
        return sentences

    return lambda indices, epoch: (segment(0, indices, epoch), segment(1, indices, epoch))


def _read_pairs(path: Path) -> list[Pair]:
    return [Pair(*pair) for pair in read_json_lines(path)]


def _damaged(folder: Path, why: str) -> DataError:
    return DataError(f"{folder} is damaged ({why}); remove that folder to prepare its pairs again")


def _refuse_damaged(folder: Path, checksums: dict[str, int]) -> None:
    for name, checksum in checksums.items():
        if crc32_checksum(folder / name) != checksum:
            raise _damaged(folder, f"{name} has changed")


def _refuse_unrelated(folder: Path) -> None:
    for path in folder.glob("*"):
        if not path.is_file() or not any(path.match(pattern) for pattern in PREPARED):
            raise OutputError(
                f"{folder} holds {path.name}, which is no file of prepared pairs and would be lost; name another "
                "folder with --output (or data.cache_dir)"
            )
