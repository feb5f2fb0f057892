"""A sample of the pairs of a run, read before its vocabulary is chosen: to measure them and to try settings on them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..config import CleanConfig, DataConfig
from ..corpus.data_report import DataReport
from ..corpus.pair import Pair
from ..data.filter import select_pairs
from ..data.read import read_part

MOST_READ = 200_000  # pairs of each corpus, from its beginning
MOST_KEPT = 50_000  # training pairs in memory, evenly spaced


class CorpusSample(NamedTuple):
    """Training pairs, and the validation pairs of the run; `total` counts the training pairs they were drawn from."""

    train: list[Pair]
    valid: list[Pair]
    total: int


def read_corpus_sample(data: DataConfig, clean: CleanConfig) -> CorpusSample:
    """Read, clean and split as `prepare` does, but only the first pairs of a large corpus.

    So the validation pairs are those of the run, and of a larger corpus some of them. Refuses what `prepare` refuses.
    """
    report = DataReport()
    with TemporaryDirectory() as folder:
        train, valid, test = (
            read_part(part, data, clean, Path(folder), report, most=MOST_READ) for part in ("train", "valid", "test")
        )
        selected = select_pairs(data, clean, train, valid, test, report)
        indices = selected.train[:: max(1, -(-len(selected.train) // MOST_KEPT))]
        return CorpusSample(list(train.pairs(indices)), selected.valid, len(selected.train))
