"""Read every pair that settings name, mend it, put its texts on disk, and note down what selecting needs to know."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..config import CleanConfig, CorpusConfig, DataConfig
from ..corpus.clean import (
    REASONS,
    DataReport,
    SourceCount,
    as_example,
    broken_rule,
    dedup_key,
    normalize_text,
    skip_malformed,
)
from ..corpus.pair import Pair
from ..corpus.readers import Where, is_task, open_pairs, source_name
from ..errors import DataError
from .store import Side, open_sides, open_writers

CHUNK = 10_000  # pairs in memory as texts

Part = Literal["train", "valid", "test"]
Hashes = NDArray[np.uint64]
RULE_NUMBERS = {rule: number for number, rule in enumerate(REASONS, start=1)}

# Told what is done, for how many pairs, and of how many: None if nobody knows.
ProgressCallback = Callable[[str, int, int | None], None]

T = TypeVar("T")


@dataclass(slots=True)
class PairKeys:
    """25 bytes a pair: the number of a rule it breaks by itself, or 0, and 64-bit hashes.

    `exact` is of the pair letter for letter; `source` and `target` leave case and blanks aside. Two different
    texts of ten million share a hash once in 300,000 corpora.
    """

    rule: bytearray = field(default_factory=bytearray)
    exact: bytearray = field(default_factory=bytearray)
    source: bytearray = field(default_factory=bytearray)
    target: bytearray = field(default_factory=bytearray)

    def add(self, pair: Pair, rule: str) -> None:
        """Note down one pair."""
        self.rule.append(RULE_NUMBERS[rule] if rule else 0)
        self.exact += _hash(f"{pair.source}\n{pair.target}")
        self.source += _hash(dedup_key(pair.source))
        self.target += _hash(dedup_key(pair.target))

    def hashes(self, name: Literal["exact", "source", "target"]) -> Hashes:
        """One hash of each pair."""
        return np.frombuffer(getattr(self, name), np.uint64)

    def __len__(self) -> int:
        return len(self.rule)


@dataclass(frozen=True, slots=True)
class ReadPairs:
    """One part as texts on disk, its marks, and where each corpus ends: (end, weight, whether made on the spot)."""

    source: Side
    target: Side
    keys: PairKeys
    ends: list[tuple[int, float, bool]]

    def pairs(self, chosen: Iterable[int]) -> Iterator[Pair]:
        """The pairs at some places; those that were read are not kept in memory."""
        for some in chunks(chosen, CHUNK):
            yield from (Pair(self.source.text(i), self.target.text(i)) for i in some)
            self.source.release_pages()
            self.target.release_pages()

    def __len__(self) -> int:
        return len(self.keys)


def read_part(
    part: Part,
    data: DataConfig,
    clean: CleanConfig,
    folder: Path,
    report: DataReport,
    *,
    progress: ProgressCallback = lambda what, done, total: None,
) -> ReadPairs:
    """All pairs of one part, in the order of the corpora; `report` counts what was read, mended and empty.

    Refuses a corpus with more malformed lines than `data.max_malformed` allows, by file, line and reason,
    and one without any line.
    """
    marks: PairKeys = PairKeys()
    ends: list[tuple[int, float, bool]] = []
    with open_writers(folder, text_stem(part), "uint8") as (source, target):
        for corpus in data.corpora():
            where: Where = getattr(corpus, part)
            if where and not (part == "test" and is_task(where)):  # a task keeps its own test apart
                before = report.read
                before_all = before + report.dropped["malformed"].count
                for pairs in chunks(_read(where, part, corpus, data, clean, report), CHUNK):
                    source.add_texts([pair.source for pair in pairs])
                    target.add_texts([pair.target for pair in pairs])
                    for pair in pairs:
                        marks.add(pair, broken_rule(pair, clean))
                    progress("reading", len(marks), None)
                if report.read + report.dropped["malformed"].count == before_all:
                    raise DataError(f"{source_name(where)} is empty; expected pairs in data.{part}")
                ends.append((len(marks), corpus.weight, is_task(where)))
                report.sources.append(SourceCount(source_name(where), read=report.read - before))
    return ReadPairs(*open_sides(folder, text_stem(part), "uint8"), marks, ends)


def text_stem(part: Part) -> str:
    """What the files of a part's texts begin with."""
    return f"{part}.texts"


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items; the last may be shorter."""
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk


def _read(
    where: Where, part: Part, corpus: CorpusConfig, data: DataConfig, clean: CleanConfig, report: DataReport
) -> Iterator[Pair]:
    limit = {"train": data.max_train_samples, "valid": data.max_valid_samples, "test": 0}[part]
    rows = open_pairs(where, folder=data.data_dir, columns=corpus.columns, limit=limit, seed=data.seed)
    malformed = report.dropped["malformed"]
    for row in skip_malformed(rows, name=source_name(where), malformed=data.max_malformed, found=malformed):
        report.read += 1
        pair = Pair(
            normalize_text(row.source, clean, report.normalized), normalize_text(row.target, clean, report.normalized)
        )
        if pair.source and pair.target:
            yield pair
        else:
            report.dropped["empty"].add(as_example(pair))


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
