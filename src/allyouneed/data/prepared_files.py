"""The folder of prepared pairs: what is in it, how it is opened, and how it is replaced.

prepared.json             the provenance of the pairs and the report on them; written last
tokenizer.json            the vocabulary; also tokenizer.target.json if the target has its own
train.source.ids, …       the training pairs as ids (data/pairs.py)
train.texts.source.ids, … all pairs as texts, if they are segmented differently in every epoch
train.rows                the index of each training pair among these texts
valid.jsonl, test.jsonl   the held-out pairs as texts
"""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..config import DataConfig
from ..config.settings import from_table
from ..errors import DataError, OutputError, refused
from ..machine.checksums import crc32_checksum
from ..machine.files import locked, parse_json, read_json_lines, read_whole, refusing_errors
from ..text.letter_case import CaseStatistics
from ..text.spans import CopyStatistics
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary
from .made_up import MadeUpPairs
from .pairs import EncodedPairs, Indices, Pair, Pairs, Side, encode_pairs
from .prepared import PreparedData
from .provenance import fingerprint
from .report import DataReport

HeldOut = Literal["valid", "test"]
HELD_OUT: tuple[HeldOut, ...] = ("valid", "test")

# The names of all files in the folder.
PREPARED = (
    "prepared.json", "tokenizer.json", "tokenizer.target.json", "train.rows", "valid.jsonl", "test.jsonl",
    "train.*.ids", "train.*.starts", "valid.texts.*", "test.texts.*", ".*.partial",
)  # fmt: skip

_ABANDONED = re.compile(r"\.([0-9a-f]{16})\.partial")  # a folder named after the fingerprint of its pairs


def prepared_folder(data: DataConfig, folder: Path, provenance: dict[str, str]) -> Path:
    """Return the folder for pairs with this provenance: `folder`, or a folder under `data.cache_dir`."""
    return Path(data.cache_dir, fingerprint(provenance)) if data.cache_dir else folder


def open_prepared(folder: Path, data: DataConfig, *, max_length: int) -> PreparedData:
    """Open the prepared pairs in a folder. Refuses a folder whose files have changed."""
    with _refusing_damage(folder):
        table = _read_table(folder)
        for name, checksum in table["checksums"].items():
            if crc32_checksum(folder / name) != checksum:
                raise ValueError(f"{name} has changed")
        report: DataReport = from_table(DataReport, table["report"])
        copy_statistics = from_table(CopyStatistics, table["copy_statistics"], {"signs"})
        case_statistics = from_table(CaseStatistics, table["case_statistics"])
        valid, test = (read_held_out(folder, part) for part in HELD_OUT)
        vocabulary = Vocabulary.load(folder, joint=len(report.vocabulary) == 1)
        return PreparedData(
            train=_open_training(folder, data, vocabulary, max_length, table["dtype"], table["weights"]),
            valid=encode_pairs(valid, vocabulary, max_length=max_length) if valid else None,
            valid_pairs=valid,
            readable=[pair for pair in valid if len(vocabulary.source.encode(pair.source)) <= max_length],
            test_pairs=test,
            vocabulary=vocabulary,
            report=report,
            copy_statistics=copy_statistics,
            case_statistics=case_statistics,
            provenance=table["provenance"],
        )


def _open_training(
    folder: Path,
    data: DataConfig,
    vocabulary: Vocabulary,
    max_length: int,
    dtype: str,
    weights: Sequence[tuple[int, float]],
) -> EncodedPairs:
    """Open the training pairs that `prepare` wrote, with the weights that it returned.

    If `data` asks for made-up pairs or subword sampling, the pairs differ in every epoch. A sampled segmentation that
    is too long for the model is replaced by the usual one.
    """
    ids = Pairs.open(folder, "train", dtype)
    train = EncodedPairs(ids.source, ids.target, tuple((end, weight) for end, weight in weights))
    if data.made_up:
        return replace(train, resample=MadeUpPairs(train, vocabulary, share=data.made_up, seed=data.seed))
    if not data.subword_sampling:
        return train
    texts = Pairs.open(folder, "train.texts", "uint8")
    rows = np.fromfile(folder / "train.rows", np.int32)

    def sampler(side: int, texts: Side, tokenizer: Tokenizer) -> Callable[[Indices, int], Side]:
        sampled = tokenizer.with_sampling(strength=data.subword_sampling, seed=data.seed)

        def sentences(indices: Indices, epoch: int) -> Iterator[list[int]]:
            for row, text in zip(indices.tolist(), texts.select(indices).texts(), strict=True):
                ids = sampled(text, (epoch << 32) + 2 * row + side)
                yield ids if len(ids) <= max_length else tokenizer.encode(text)

        return lambda indices, epoch: Side.from_sentences(list(sentences(indices, epoch)))

    source = sampler(0, texts.source, vocabulary.source)
    target = sampler(1, texts.target, vocabulary.target)
    return replace(
        train, resample=lambda chosen, epoch: Pairs(source(rows[chosen], epoch), target(rows[chosen], epoch))
    )


def stored_provenance(folder: Path) -> dict[str, str] | None:
    """Read the provenance of the pairs in a folder; None if it has no pairs, or pairs of an earlier version."""
    with _refusing_damage(folder):
        provenance: dict[str, str] | None = _read_table(folder).get("provenance")
        if not isinstance(provenance, dict | None):
            raise TypeError("prepared.json: provenance is not a table")
        return provenance


def open_training_ids(folder: Path) -> Pairs | None:
    """Open the ids of the training pairs in a folder of prepared pairs; None if there are none."""
    with _refusing_damage(folder):
        dtype = _read_table(folder).get("dtype")
        return (Pairs.open(folder, "train", dtype) or None) if dtype else None


def read_held_out(folder: Path, part: HeldOut) -> list[Pair]:
    """Read the validation or test pairs in a folder of prepared pairs; [] if it has none."""
    path = folder / f"{part}.jsonl"
    return [Pair(*row) for row in read_json_lines(path)] if path.exists() else []


@contextmanager
def replacing_folder(folder: Path, provenance: dict[str, str]) -> Iterator[Path | None]:
    """Yield an empty folder that replaces `folder` if the `with` block succeeds; None if `folder` is prepared already.

    Waits while another process prepares `folder`. Removes half-written folders of killed processes. Refuses to replace
    a folder that contains other files.
    """
    _remove_abandoned(folder.parent)
    with locked(folder, what=str(folder), wait=True):
        if stored_provenance(folder) == provenance:
            yield None
            return
        for path in folder.glob("*"):
            if not path.is_file() or not any(path.match(pattern) for pattern in PREPARED):
                raise OutputError(
                    f"{folder} has {path.name}, which is not a file of prepared pairs and would be lost; name another "
                    "folder with --output (or data.cache_dir)"
                )
        growing = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(growing, ignore_errors=True)
        try:
            with refusing_errors(folder):
                growing.mkdir()
                yield growing
                shutil.rmtree(folder, ignore_errors=True)
                growing.replace(folder)
        finally:
            shutil.rmtree(growing, ignore_errors=True)


def _remove_abandoned(cache: Path) -> None:
    """Remove the half-written folders of killed processes."""
    for path in cache.glob(".*.partial"):
        name = _ABANDONED.fullmatch(path.name)
        if name:
            with suppress(OutputError), locked(path.with_name(name[1]), what=str(path)):
                shutil.rmtree(path, ignore_errors=True)


def _read_table(folder: Path) -> dict[str, Any]:
    """Read `prepared.json`; {} if there is no such file."""
    path = folder / "prepared.json"
    table: dict[str, Any] = parse_json(read_whole(path)) if path.exists() else {}
    return table


def _refusing_damage(folder: Path) -> AbstractContextManager[None]:
    damages = (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError)
    return refused(DataError, f"{folder} is damaged", *damages, remedy="remove that folder to prepare its pairs again")
