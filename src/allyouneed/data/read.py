"""Read and clean every pair that the settings name, write its texts to disk, and keep keys to compare it by."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..cluster import block_map
from ..config import CleanConfig, DataConfig
from ..errors import DataError
from .clean import CleanPairs, CorpusEnd, PairKeys, clean_block, skip_malformed
from .readers import Where, describe_columns, is_task, open_pairs, source_name
from .report import DataReport, Part, SourceCount
from .store import Pairs, chunks, writing_pairs

# Called with the current stage, the number of pairs done, and the total, or None if that is unknown.
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
    """All pairs of one part, cleaned, in the order of the corpora; `report` counts what was read and dropped.

    `most` limits the rows that are read of each corpus, from its beginning. `ray` is the address of a cluster whose
    processes help.
    Refuses a corpus with more malformed lines than `data.max_malformed` allows, by file, line and reason,
    and an empty one.
    """
    keys, counts, ends = PairKeys(), report.parts()[part], list[CorpusEnd]()
    limit = {"train": data.max_train_samples, "valid": data.max_valid_samples, "test": 0}[part]
    with writing_pairs(folder, f"{part}.texts") as write, block_map(partial(clean_block, clean=clean), ray) as cleaned:
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
                for block, block_report in cleaned(map(Pairs.from_texts, chunks(pairs))):
                    write(block)
                    keys.extend(block.keys)
                    counts.merge(block_report)
                    progress("reading", len(keys), None)
                if (counts.read, malformed.count) == (before, malformed_before):
                    raise DataError(f"{name} is empty; expected pairs in data.{part}")
                ends.append(CorpusEnd(len(keys), corpus.weight, is_task(where), corpus.synthetic))
                if part == "train":
                    report.sources.append(SourceCount(name, read=counts.read - before))
    texts = Pairs.open(folder, f"{part}.texts", "uint8")
    return CleanPairs(texts.source, texts.target, keys, ends)
