"""Read and clean all pairs that the settings name, write their texts to disk, and compute keys to compare pairs by.

This file looks at each pair by itself; `data/filter.py` compares pairs by their keys.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config import CleanConfig, DataConfig
from ..errors import DataError
from ..machine.cluster import block_map
from ..text.normalize import Normalization
from .pairs import Fault, LeftOut, Pair, Pairs, Rows, chunks, writing_pairs
from .readers import describe_columns, is_task, open_pairs, source_name
from .report import MAX_EXAMPLES, REASONS, DataReport, Part, PartReport, RuleCount, SourceCount

Hashes = NDArray[np.uint64]
# The keys by which pairs are compared: which rule of `PAIR_RULES` a pair breaks (its number from 1, or 0 for none), a
# hash of the whole pair, and a hash of each side that ignores case and spaces. With 64 bits, about 1 in 300,000 corpora
# of ten million texts has two different texts with the same hash.
PAIR_KEYS = np.dtype([("rule", "u1"), ("exact", "u8"), ("source", "u8"), ("target", "u8")])
PairKeys = NDArray[np.void]
RULE_NUMBERS = {rule: number for number, rule in enumerate(REASONS, start=1)}

_SLACK = 20  # characters; allowed on top of a length ratio, because short texts often differ in length


def clean_pairs(pairs: Iterable[Pair], clean: CleanConfig, report: PartReport) -> Iterator[Pair]:
    """Normalize pairs, and yield those without an empty side. `report` counts all of them."""
    normalization = Normalization.from_config(clean)
    for row in pairs:
        report.read += 1
        source, target = (normalize_text(text, normalization, report.normalized) for text in row)
        pair = Pair(source, target)
        if source and target:
            yield pair
        else:
            report.dropped["empty"].add(as_example(pair))


def skip_malformed(
    rows: Rows, malformed: RuleCount, *, name: str, max_malformed: float, notes: list[str] | None = None
) -> Iterator[Pair]:
    """Yield the pairs among the rows of a source.

    `malformed` counts the other lines. If `notes` is given, one line about each count is added to it.

    Refuses a source with a larger share of malformed lines than `max_malformed`, and shows the first of them. `name` is
    the name of the source in the message.
    """
    before = malformed.count
    count = 0
    first: list[Fault] = []
    for row in rows:
        if isinstance(row, Fault):
            count += row.lines
            fault = row.message(name)
            malformed.add(fault, row.lines)
            if len(first) < MAX_EXAMPLES:
                first.append(row)
        elif isinstance(row, LeftOut):
            if notes is not None:
                notes.append(row.message(name))
        else:
            count += 1
            yield row
    faults = malformed.count - before
    if faults > max_malformed * count:
        raise DataError(
            f"{name} has {faults:,} malformed of {count:,} lines, more than data.max_malformed={max_malformed} "
            f"allows: {'; '.join(fault.message(name) for fault in first)}"
            + next(filter(None, (fault.remedy(name) for fault in first)), "")
        )


def normalize_text(text: str, normalization: Normalization, counts: dict[str, int]) -> str:
    """Normalize and strip a text. `counts` counts, for each setting, the texts that it changed."""
    text = text.strip()
    if text.isascii() and text.isprintable():
        return text
    plain = normalization.without_control(text).strip()
    composed = normalization.composed(plain).strip()
    counts["strip_control"] += plain != text
    counts["unicode"] += composed != plain
    return composed


# The rules by the names of their settings, in the order in which they are tried. A function returns True if a pair
# breaks its rule. A setting of 0 switches its rule off.
PAIR_RULES: dict[str, Callable[[Pair, CleanConfig], bool]] = {
    "max_chars": lambda pair, clean: 0 < clean.max_chars < max(map(len, pair)),
    "max_length_ratio": lambda pair, clean: (
        0 < clean.max_length_ratio * (min(map(len, pair)) + _SLACK) < max(map(len, pair)) + _SLACK
    ),
    "drop_copies": lambda pair, clean: pair.source == pair.target and 0 < clean.drop_copies <= len(pair.source.split()),
}


def broken_rule(pair: Pair, clean: CleanConfig) -> str:
    """Return the name of the first rule of `PAIR_RULES` that a pair breaks, or ""."""
    return next((rule for rule, breaks in PAIR_RULES.items() if breaks(pair, clean)), "")


def dedup_key(text: str) -> str:
    """Return a key that is equal for texts which differ only in case and spaces."""
    return " ".join(text.casefold().split())


def as_example(pair: Pair) -> str:
    """Format a pair as an example for a report."""
    return f"{pair.source[:80]} → {pair.target[:80]}"


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


class CorpusEnd(NamedTuple):
    """One corpus among all pairs: the index where its pairs end, its weight, and whether the pairs were generated."""

    end: int
    weight: float
    is_task: bool
    is_synthetic: bool


@dataclass(frozen=True, slots=True)
class CleanPairs(Pairs):
    """Pairs as texts, with the keys (`PAIR_KEYS`) to compare them by and the end of each corpus."""

    keys: PairKeys
    ends: Sequence[CorpusEnd] = ()


def clean_block(block: Pairs, clean: CleanConfig) -> tuple[CleanPairs, PartReport]:
    """Normalize pairs, drop those with an empty side, and note which rule each of the others breaks.

    The result depends only on the arguments, so any process on any machine can clean a block of pairs.
    """
    report = PartReport()
    pairs = list(clean_pairs(block.texts(), clean, report))
    keys = [
        (
            RULE_NUMBERS.get(broken_rule(pair, clean), 0),
            _hash(f"{pair.source}\n{pair.target}"),
            _hash(dedup_key(pair.source)),
            _hash(dedup_key(pair.target)),
        )
        for pair in pairs
    ]
    cleaned = Pairs.from_texts(pairs)
    return CleanPairs(cleaned.source, cleaned.target, np.array(keys, PAIR_KEYS)), report


# A function of the current stage, the number of pairs done, and their total (None if unknown).
ProgressCallback = Callable[[str, int, int | None], None]


def read_part(
    part: Part,
    data: DataConfig,
    clean: CleanConfig,
    folder: Path,
    report: DataReport,
    *,
    progress: ProgressCallback = lambda what, done, total: None,
    most: int | None = None,
    ray: str = "",
) -> CleanPairs:
    """Read and clean all pairs of a part, in the order of the corpora. `report` counts pairs read and dropped.

    If `most` is set, only that many rows are read from the beginning of each corpus. `ray` is the address of a cluster
    whose processes help. Refuses an empty corpus, and a corpus with more malformed lines than `data.max_malformed`
    allows, by file, line and reason.
    """
    keys = [np.zeros(0, PAIR_KEYS)]
    counts = report.parts()[part]
    ends = list[CorpusEnd]()
    read = 0
    limit = {"train": data.max_train_samples, "valid": data.max_valid_samples, "test": 0}[part]
    with writing_pairs(folder, f"{part}.texts") as write, block_map(partial(clean_block, clean=clean), ray) as cleaned:
        for corpus in data.corpora():
            where = getattr(corpus, part)
            # The test pairs of a task are only generated when they are needed.
            if where and not (part == "test" and is_task(where)):
                name = source_name(where)
                malformed = counts.dropped["malformed"]
                before = counts.read, malformed.count
                source: Any = {"folder": data.data_dir, "columns": corpus.columns, "sheet": corpus.sheet}
                rows = open_pairs(where, **source, limit=limit, seed=data.seed)
                if line := describe_columns(where, **source):
                    report.columns.append(line)
                pairs = skip_malformed(
                    islice(rows, most), malformed, name=name, max_malformed=data.max_malformed, notes=report.columns
                )
                for block, block_report in cleaned(map(Pairs.from_texts, chunks(pairs))):
                    write(block)
                    keys.append(block.keys)
                    counts.merge(block_report)
                    read += len(block)
                    progress("reading", read, None)
                if (counts.read, malformed.count) == before:
                    raise DataError(f"{name} is empty; expected pairs in data.{part}")
                ends.append(CorpusEnd(read, corpus.weight, is_task(where), corpus.synthetic))
                if part == "train":
                    report.sources.append(SourceCount(name, read=counts.read - before[0]))
    texts = Pairs.open(folder, f"{part}.texts", "uint8")
    return CleanPairs(texts.source, texts.target, np.concatenate(keys), ends)
