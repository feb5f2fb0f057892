"""A sample of the pairs of a run, read before its vocabulary is chosen: to measure them and to try settings on them."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..config import CleanConfig, DataConfig
from ..data.clean import read_part
from ..data.filter import mask_corpora, select_pairs
from ..data.pairs import Pair, stride
from ..data.readers import has_a_pair_a_line, local_paths
from ..data.report import DataReport, SourceCount
from ..files import refusing_errors
from ..text.lines import count_lines
from .choice_rules import held_out_share
from .statistics import PairStatistics, measure_pairs

MOST_READ = 200_000  # pairs of each corpus, from its beginning
MOST_KEPT = 50_000  # training pairs in memory, evenly spaced


class CorpusSample(NamedTuple):
    """Training pairs with their statistics (None: there are none), and the validation pairs of the run.

    `total` counts the training pairs they were drawn from, and `sources` the pairs that were read of each corpus.
    `held_out` is the share of the pairs that is held out for validation, and as many for the test.
    """

    train: list[Pair]
    statistics: PairStatistics | None
    valid: list[Pair]
    total: int
    sources: list[SourceCount]
    held_out: float


def read_corpus_sample(data: DataConfig, clean: CleanConfig, *, choose_held_out: bool = False) -> CorpusSample:
    """Read, clean and split as `prepare` does, but only the first pairs of a large corpus.

    So the validation pairs are those of the run, and of a larger corpus some of them. `choose_held_out` replaces
    `data.held_out` by the share that suits the number of pairs. Refuses what `prepare` refuses.
    """
    report = DataReport()
    with TemporaryDirectory() as folder, refusing_errors(Path(folder)):
        train, valid, test = (
            read_part(part, data, clean, Path(folder), report, most=MOST_READ) for part in ("train", "valid", "test")
        )
        if choose_held_out:
            may_be_held_out = ~mask_corpora(train, lambda corpus: corpus.is_synthetic)
            data = replace(data, held_out=held_out_share(int(may_be_held_out.sum())))
        selected = select_pairs(data, clean, train, valid, test, report)
        indices = selected.train[:: stride(len(selected.train), MOST_KEPT)]
        pairs = list(train.texts(indices))
        statistics = measure_pairs(pairs) if pairs else None
        return CorpusSample(pairs, statistics, selected.valid, len(selected.train), report.sources, data.held_out)


def estimate_total(sample: CorpusSample, data: DataConfig) -> int:
    """About how many training pairs the run has: more than were read of a large file, by its lines."""
    read = present = 0
    for corpus, source in zip((one for one in data.corpora() if one.train), sample.sources, strict=True):
        is_cut = source.read >= (1 - data.max_malformed) * MOST_READ and has_a_pair_a_line(corpus.train)
        lines = count_lines(local_paths(corpus.train, folder=data.data_dir)[0]) if is_cut else 0
        read, present = read + source.read, present + max(source.read, lines)
    total = round(sample.total * present / max(1, read))
    return min(total, data.max_train_samples or total)
