"""A sample of the pairs of a run, read before its vocabulary is chosen: to measure them and to try settings on them."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..config import CleanConfig, DataConfig
from ..corpus.data_report import DataReport
from ..corpus.lines import count_lines
from ..corpus.pair import Pair
from ..corpus.readers import has_a_pair_a_line, local_paths
from ..data.filter import select_pairs
from ..data.read import read_part
from .choice_rules import held_out_share

MOST_READ = 200_000  # pairs of each corpus, from its beginning
MOST_KEPT = 50_000  # training pairs in memory, evenly spaced


class CorpusSample(NamedTuple):
    """Training pairs, and the validation pairs of the run; `total` is about the number of its training pairs.

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
        total = round(len(selected.train) / _share_read(data, report))
        return CorpusSample(list(train.pairs(indices)), selected.valid, total, data.held_out)


def _share_read(data: DataConfig, report: DataReport) -> float:
    """The share of the training pairs that was read, by the lines of the large files; 1 where a file has no lines."""
    read = present = 0
    for corpus, source in zip((one for one in data.corpora() if one.train), report.sources, strict=True):
        read += source.read
        is_cut = source.read > MOST_READ / 2 and has_a_pair_a_line(corpus.train)
        lines = count_lines(local_paths(corpus.train, folder=data.data_dir)[0]) if is_cut else 0
        present += max(source.read, min(lines, data.max_train_samples or lines))
    return read / max(1, present) or 1.0
