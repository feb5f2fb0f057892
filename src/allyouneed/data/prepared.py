"""Prepared pairs: in memory, the sources and settings they come from (provenance), and the folder that stores them.

prepared.json             the provenance of the pairs and the report on them; written last
tokenizer.json            the vocabulary; also tokenizer.target.json if the target has its own
train.source.ids, …       the training pairs as ids (data/pairs.py)
train.texts.source.ids, … all pairs as texts, if they are segmented differently in every epoch
train.rows                the index of each training pair among these texts
valid.jsonl, test.jsonl   the held-out pairs as texts
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..config import CleanConfig, DataConfig, TrainConfig
from ..config.settings import from_table
from ..errors import DataError, OutputError, refused
from ..machine.checksums import crc32_checksum
from ..machine.files import (
    locked,
    parse_json,
    read_json_lines,
    read_whole,
    refusing_errors,
    to_json,
    write_whole,
)
from ..text.letter_case import CaseStatistics
from ..text.lines import file_ending
from ..text.spans import CopyStatistics
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary
from .batch import Batch, batches
from .made_up import MadeUpPairs
from .pairs import EncodedPairs, Indices, Pair, Pairs, Side, encode_pairs, stride
from .readers import Where, local_paths
from .report import DataReport

PREPARED_FORMAT = 5  # version of the files that data/prepare.py writes

# The names of all files in the folder.
PREPARED = (
    "prepared.json", "tokenizer.json", "tokenizer.target.json", "train.rows", "valid.jsonl", "test.jsonl",
    "train.*.ids", "train.*.starts", "valid.texts.*", "test.texts.*", ".*.partial",
)  # fmt: skip

_ABANDONED = re.compile(r"\.([0-9a-f]{16})\.partial")  # a folder named after the fingerprint of its pairs

# The provenance has the content of these files and folders instead of their names.
_PATHS = {"train", "valid", "test", "columns", "corpus", "data_dir", "cache_dir", "bpe_codes", "tokenizer"}
_DESCRIPTIONS = {"source_language", "target_language", "license"}  # used only in the model card


MOST_SHOWN, SHOWN_TEXT = 24, 80  # tokens, and characters, of an example


@dataclass(frozen=True, slots=True)
class PreparedData:
    """The data of a run. `valid` is None if no pairs are held out.

    `readable` are the validation pairs whose source fits the model. `provenance` names every source and setting that
    the pairs depend on, with a fingerprint of each.
    """

    train: EncodedPairs
    valid: EncodedPairs | None
    valid_pairs: list[Pair]
    readable: list[Pair]
    test_pairs: list[Pair]
    vocabulary: Vocabulary
    report: DataReport
    copy_statistics: CopyStatistics
    case_statistics: CaseStatistics
    provenance: dict[str, str]

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the pairs."""
        return fingerprint(self.provenance)

    def batches(self, config: TrainConfig, *, skip: int = 0, part: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """Yield training batches forever, without the first `skip`.

        `part` is (number, count): only that part of each batch.
        """
        return batches(
            self.train,
            batch_tokens=config.batch_tokens,
            seed=config.seed,
            pad_id=self.vocabulary.source.pad_id,
            target_pad_id=self.vocabulary.target.pad_id,
            skip=skip,
            part=part,
        )

    def validation_samples(self, count: int) -> list[Pair]:
        """Return at most `count` validation pairs, evenly spaced and always the same."""
        return self.readable[:: stride(len(self.readable), max(1, count))][:count]

    def describe(self) -> list[str]:
        """Describe the sizes, the dropped pairs, and the rules that were not applied, in lines."""
        held_out = {"validate": len(self.valid or ()), "test": len(self.test_pairs)}
        parts = [f"{count:,} to {use}" for use, count in held_out.items() if count]
        sizes = " and ".join(f"{size:,}" for size in self.report.vocabulary)
        lines = [", ".join([f"{len(self.train):,} pairs to train on", *parts, f"vocabulary of {sizes}"])]
        lines += self._describe_unknown()
        return [*self.report.columns, *lines, *self.report.left_out(), *self.report.unused_rules()]

    def describe_sides(self) -> list[str]:
        """Show how each side of the first training pair is split into tokens."""
        sides = {name: (getattr(self.vocabulary, name), getattr(self.train, name)) for name in ("source", "target")}
        return [f"{name}: {show_tokens(tokenizer, side[0])}" for name, (tokenizer, side) in sides.items() if len(side)]

    def _describe_unknown(self) -> Iterator[str]:
        """Warn if validation pairs contain text outside the vocabulary, which is learned from the training pairs."""
        copies = self.train.resample and self.vocabulary.target.is_of_characters
        written = "written only where the source has it" if copies else "never written"
        for name, what in (("source", "read as <unk>"), ("target", written)):
            tokenizer = getattr(self.vocabulary, name)
            texts = [getattr(pair, name) for pair in self.valid_pairs]
            some = [
                text for text, ids in zip(texts, tokenizer.encode_all(texts), strict=True) if tokenizer.unk_id in ids
            ]
            if some:
                yield (
                    f"{len(some)} of {len(texts)} validation {name}s have what no training pair has, which is {what}: "
                    f"{some[0]!r:.80}"
                )

    def identity(self) -> dict[str, object]:
        """Return the facts that identify this data: sizes, for people to read, and fingerprints."""
        return {
            "data.train's number of pairs": len(self.train),
            "data.valid's number of pairs": 0 if self.valid is None else len(self.valid),
            "the fingerprint of the pairs": self.fingerprint,
            "the fingerprint of the vocabulary": self.vocabulary.fingerprint(),
        }

    def save(self, output: Path) -> None:
        """Write the vocabulary and the data report to a folder."""
        self.vocabulary.save(output)
        report = self.report.table() | {"fingerprint": self.fingerprint}
        write_whole(output / "data-report.json", to_json(report, indent=2) + "\n")


def show_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Show a text and its first tokens, such as `jump around left → jump · around · left`."""
    content = tokenizer.content(ids)
    pieces = [piece.strip("␣") or "␣" for piece in tokenizer.pieces(content[:MOST_SHOWN])]
    return f"{tokenizer.decode(content)[:SHOWN_TEXT]} → {' · '.join(pieces)}{' …' * (len(content) > MOST_SHOWN)}"


def compute_provenance(
    data: DataConfig, clean: CleanConfig, max_length: int, vocabulary: Vocabulary | None
) -> dict[str, str]:
    """List every source with its kind and the fingerprint of its content, or its address; and all settings."""
    provenance = {"format": str(PREPARED_FORMAT), "model.max_length": str(max_length)}
    for number, corpus in enumerate(data.corpora()):
        name = f"data.corpus[{number}]" if number else "data"
        for part in ("train", "valid", "test"):
            provenance[f"{name}.{part}"] = _source_fingerprint(getattr(corpus, part), data.data_dir)
        provenance |= {f"{name}.columns": str(corpus.columns), f"{name}.weight": str(corpus.weight)}
        if corpus.synthetic:
            provenance[f"{name}.synthetic"] = "True"
    if data.bpe_codes:
        provenance["data.bpe_codes"] = _file_fingerprint(Path(data.data_dir, data.bpe_codes), data.data_dir)
    provenance |= {
        f"data.{key}": str(value) for key, value in asdict(data).items() if key not in _PATHS | _DESCRIPTIONS
    }
    provenance |= {f"clean.{key}": str(value) for key, value in asdict(clean).items()}
    if vocabulary:
        provenance["vocabulary"] = vocabulary.fingerprint()
    return provenance


def prepared_folder(data: DataConfig, folder: Path, provenance: dict[str, str]) -> Path:
    """Return the folder for pairs with this provenance: `folder`, or a folder under `data.cache_dir`."""
    return Path(data.cache_dir, fingerprint(provenance)) if data.cache_dir else folder


def fingerprint(provenance: dict[str, str]) -> str:
    """Return 16 hexadecimal digits that differ for different provenances."""
    return sha256(json.dumps(provenance).encode()).hexdigest()[:16]


def describe_difference(then: dict[str, str], now: dict[str, str]) -> str:
    """Name every source and setting that differs, with its old and new value."""
    keys = sorted(key for key in then.keys() | now.keys() if then.get(key) != now.get(key))
    return ", ".join(f"{key} was {then.get(key)} and is {now.get(key)}" for key in keys)


def _source_fingerprint(where: Where, folder: str) -> str:
    """Return a fingerprint of the files of a source: their content and how they are read."""
    files = local_paths(where, folder=folder)
    kind = "aligned" if len(files) > 1 else "".join(map(file_ending, files))
    return f"{kind} {' + '.join(_file_fingerprint(file, folder) for file in files)}" if files else str(where)


def _file_fingerprint(path: Path, folder: str) -> str:
    if not path.exists():
        hint = "" if folder or path.is_absolute() else "; name the folder that it is in: data.data_dir=FOLDER"
        raise DataError(f"{path} does not exist{hint}")
    with refused(DataError, f"{path} could not be read", OSError), path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]


def open_prepared(folder: Path, data: DataConfig, *, max_length: int) -> PreparedData:
    """Open the prepared pairs in a folder. Refuses a folder whose files have changed."""
    with _refusing_damage(folder):
        table = _read_table(folder)
        valid = read_held_out(folder, "valid")
        test = read_held_out(folder, "test")
        for name, checksum in table["checksums"].items():
            if crc32_checksum(folder / name) != checksum:
                raise ValueError(f"{name} has changed")
        report: DataReport = from_table(DataReport, table["report"])
        vocabulary = Vocabulary.load(folder, joint=len(report.vocabulary) == 1)
        return PreparedData(
            train=_open_training(folder, data, vocabulary, max_length, table["dtype"], table["weights"]),
            valid=encode_pairs(valid, vocabulary, max_length=max_length) if valid else None,
            valid_pairs=valid,
            readable=[pair for pair in valid if len(vocabulary.source.encode(pair.source)) <= max_length],
            test_pairs=test,
            vocabulary=vocabulary,
            report=report,
            copy_statistics=from_table(CopyStatistics, table["copy_statistics"], {"signs"}),
            case_statistics=from_table(CaseStatistics, table["case_statistics"]),
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


def read_held_out(folder: Path, part: Literal["valid", "test"]) -> list[Pair]:
    """Read the validation or test pairs in a folder of prepared pairs; [] if it has none."""
    path = folder / f"{part}.jsonl"
    return [Pair(*row) for row in read_json_lines(path)] if path.exists() else []


@contextmanager
def replacing_folder(folder: Path, provenance: dict[str, str]) -> Iterator[Path | None]:
    """Yield an empty folder that replaces `folder` if the `with` block succeeds; None if `folder` is prepared already.

    Waits while another process prepares `folder`. Removes half-written folders of killed processes. Refuses to replace
    a folder that contains other files.
    """
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
        for path in folder.parent.glob(".*.partial"):
            if name := _ABANDONED.fullmatch(path.name):
                with suppress(OutputError), locked(path.with_name(name[1]), what=str(path)):
                    shutil.rmtree(path, ignore_errors=True)
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


def _read_table(folder: Path) -> dict[str, Any]:
    """Read `prepared.json`; {} if there is no such file."""
    path = folder / "prepared.json"
    table: dict[str, Any] = parse_json(read_whole(path)) if path.exists() else {}
    return table


def _refusing_damage(folder: Path) -> AbstractContextManager[None]:
    damages = (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError)
    return refused(DataError, f"{folder} is damaged", *damages, remedy="remove that folder to prepare its pairs again")
