"""Read and clean every pair that the settings name, write its texts to disk, and keep keys to compare it by."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..config import CleanConfig, DataConfig
from ..corpus.clean import broken_rule, clean_rows, dedup_key
from ..corpus.data_report import REASONS, DataReport, Part, SourceCount
from ..corpus.pair import Pair
from ..corpus.readers import Where, is_task, open_pairs, source_name
from ..errors import DataError
from .store import Side, open_sides, open_writers

CHUNK = 10_000  # pairs in memory as texts

Hashes = NDArray[np.uint64]
RULE_NUMBERS = {rule: number for number, rule in enumerate(REASONS, start=1)}

# Called with the current stage, the number of pairs done, and the total, or None if that is unknown.
ProgressCallback = Callable[[str, int, int | None], None]

_T = TypeVar("_T")


@dataclass(slots=True)
class PairKeys:
    """What pairs are compared by, 25 bytes a pair: the number of the rule of `PAIR_RULES` it breaks, or 0, and hashes.

    `exact` hashes the whole pair; `source` and `target` hash the dedup key of a side, which ignores case and spaces.
    Hashes have 64 bits: of corpora of ten million texts, about 1 in 300,000 has two texts with the same hash.
    """

    rule: bytearray = field(default_factory=bytearray)
    exact: bytearray = field(default_factory=bytearray)
    source: bytearray = field(default_factory=bytearray)
    target: bytearray = field(default_factory=bytearray)

    def add(self, pair: Pair, rule: str) -> None:
        """Append the keys of one pair."""
        self.rule.append(RULE_NUMBERS[rule] if rule else 0)
        self.exact += _hash(f"{pair.source}\n{pair.target}")
        self.source += _hash(dedup_key(pair.source))
        self.target += _hash(dedup_key(pair.target))

    def hashes(self, name: Literal["exact", "source", "target"]) -> Hashes:
        """One hash of each pair."""
        return np.frombuffer(getattr(self, name), np.uint64)

    def __len__(self) -> int:
        return len(self.rule)


class CorpusEnd(NamedTuple):
    """Where the pairs of one corpus end among all that were read, its weight, and what made the pairs."""

    end: int
    weight: float
    is_task: bool
    is_synthetic: bool


@dataclass(frozen=True, slots=True)
class ReadPairs:
    """The pairs of one part: texts on disk, keys in memory, and where each corpus ends."""

    source: Side
    target: Side
    keys: PairKeys
    ends: list[CorpusEnd]

    def pairs(self, indices: Iterable[int]) -> Iterator[Pair]:
        """The pairs with these indices; their texts are not kept in memory."""
        for chunk in chunks(indices, CHUNK):
            yield from (Pair(self.source.text(i), self.target.text(i)) for i in chunk)
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
    most: int | None = None,
) -> ReadPairs:
    """All pairs of one part, cleaned, in the order of the corpora; `report` counts what was read and dropped.

    `most` limits the rows that are read of each corpus, from its beginning.
    Refuses a corpus with more malformed lines than `data.max_malformed` allows, by file, line and reason,
    and an empty one.
    """
    keys, counts = PairKeys(), report.parts()[part]
    limit = {"train": data.max_train_samples, "valid": data.max_valid_samples, "test": 0}[part]
    ends: list[CorpusEnd] = []
    with open_writers(folder, text_stem(part), "uint8") as (source, target):
        for corpus in data.corpora():
            where: Where = getattr(corpus, part)
            if where and not (part == "test" and is_task(where)):  # the test pairs of a task are generated when needed
                name, before, malformed = source_name(where), counts.read, counts.dropped["malformed"].count
                rows = open_pairs(where, folder=data.data_dir, columns=corpus.columns, limit=limit, seed=data.seed)
                for pairs in chunks(
                    clean_rows(islice(rows, most), clean, counts, name=name, max_malformed=data.max_malformed), CHUNK
                ):
                    source.add_texts([pair.source for pair in pairs])
                    target.add_texts([pair.target for pair in pairs])
                    for pair in pairs:
                        keys.add(pair, broken_rule(pair, clean))
                    progress("reading", len(keys), None)
                if (counts.read, counts.dropped["malformed"].count) == (before, malformed):
                    raise DataError(f"{name} is empty; expected pairs in data.{part}")
                ends.append(CorpusEnd(len(keys), corpus.weight, is_task(where), corpus.synthetic))
                if part == "train":
                    report.sources.append(SourceCount(name, read=counts.read - before))
    return ReadPairs(*open_sides(folder, text_stem(part), "uint8"), keys, ends)


def text_stem(part: Part) -> str:
    """The beginning of the file names of a part's texts."""
    return f"{part}.texts"


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of `size` items; the last may be shorter."""
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
