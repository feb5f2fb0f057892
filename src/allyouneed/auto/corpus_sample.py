"""A sample of the pairs of a run, read before its vocabulary is chosen: to measure them and to try settings on them."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..config import CleanConfig, DataConfig
from ..corpus.data_report import DataReport
from ..corpus.pair import Pair
from ..data.filter import select_pairs
from ..data.read import read_part
from .choice_rules import held_out_share

MOST_READ = 200_000  # pairs of each corpus, from its beginning
MOST_KEPT = 50_000  # training pairs in memory, evenly spaced


class CorpusSample(NamedTuple):
    """Training pairs, and the validation pairs of the run; `total` counts the training pairs they were drawn from.

    `held_out` is the share of the pairs that is held out for validation, and as many for the test.
    """

    train: list[Pair]
    valid: list[Pair]
    total: int
    held_out: float


def read_corpus_sample(data: DataConfig, clean: CleanConfig, *, choose_held_out: bool = False) -> CorpusSample:
    """Read, clean and split as `prepare` does, but only the first pairs of a large corpus.

    So the validation pairs are those of the run, and of a larger corpus some of them. `choose_held_out` replaces
    `data.held_out` by the share that suits the number of pairs. Refuses what `prepare` refuses.
    """
    report = DataReport()
    with TemporaryDirectory() as folder:
        train, valid, test = (
            read_part(part, data, clean, Path(folder), report, most=MOST_READ) for part in ("train", "valid", "test")
        )
        if choose_held_out:
            data = replace(data, held_out=held_out_share(len(train)))
        selected = select_pairs(data, clean, train, valid, test, report)
        indices = selected.train[:: max(1, -(-len(selected.train) // MOST_KEPT))]
        return CorpusSample(list(train.pairs(indices)), selected.valid, len(selected.train), data.held_out)
