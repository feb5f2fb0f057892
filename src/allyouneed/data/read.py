"""Read and clean every pair that the settings name, write its texts to disk, and keep keys to compare it by."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..config import CleanConfig, DataConfig
from ..errors import DataError
from .blocks import CleanBlocks, clean_block, columns
from .clean import skip_malformed
from .pair import Pair
from .pair_keys import PairKeys
from .readers import Where, describe_columns, is_task, open_pairs, source_name
from .report import DataReport, Part, SourceCount
from .store import Side, open_sides, open_writers

CHUNK = 10_000  # pairs in memory as texts

# Called with the current stage, the number of pairs done, and the total, or None if that is unknown.
ProgressCallback = Callable[[str, int, int | None], None]

_T = TypeVar("_T")


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
    cleaned: CleanBlocks | None = None,
    progress: ProgressCallback = lambda what, done, total: None,
    most: int | None = None,
) -> ReadPairs:
    """All pairs of one part, cleaned, in the order of the corpora; `report` counts what was read and dropped.

    `cleaned` maps blocks of pairs in other processes; None: in this one. `most` limits the rows that are read of each
    corpus, from its beginning.
    Refuses a corpus with more malformed lines than `data.max_malformed` allows, by file, line and reason,
    and an empty one.
    """
    cleaned = cleaned or partial(map, partial(clean_block, clean=clean))
    keys, counts = PairKeys(), report.parts()[part]
    limit = {"train": data.max_train_samples, "valid": data.max_valid_samples, "test": 0}[part]
    ends: list[CorpusEnd] = []
    with open_writers(folder, text_stem(part)) as (source, target):
        for corpus in data.corpora():
            where: Where = getattr(corpus, part)
            if where and not (part == "test" and is_task(where)):  # the test pairs of a task are generated when needed
                name, before, malformed = source_name(where), counts.read, counts.dropped["malformed"]
                malformed_before = malformed.count
                how: Any = {"folder": data.data_dir, "columns": corpus.columns, "sheet": corpus.sheet}
                rows = open_pairs(where, **how, limit=limit, seed=data.seed)
                if text := describe_columns(where, **how):
                    report.columns.append(text)
                pairs = skip_malformed(islice(rows, most), malformed, name=name, max_malformed=data.max_malformed)
                for block in cleaned(columns(chunk) for chunk in chunks(pairs, CHUNK)):
                    source.add(block.source)
                    target.add(block.target)
                    keys.extend(block.keys)
                    counts.merge(block.report)
                    progress("reading", len(keys), None)
                if (counts.read, malformed.count) == (before, malformed_before):
                    raise DataError(f"{name} is empty; expected pairs in data.{part}")
                ends.append(CorpusEnd(len(keys), corpus.weight, is_task(where), corpus.synthetic))
                if part == "train":
                    report.sources.append(SourceCount(name, read=counts.read - before))
    return ReadPairs(*open_sides(folder, text_stem(part), "uint8"), keys, ends)


def text_stem(part: Part) -> str:
    """The beginning of the file names of a part's texts."""
    return f"{part}.texts"


def stride(length: int, most: int) -> int:
    """The step of a slice that takes at most `most` of `length` items, evenly spaced."""
    return max(1, -(-length // most))


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of `size` items; the last may be shorter."""
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk
