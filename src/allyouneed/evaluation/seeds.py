"""Scores of many models. Runs that differ only in their seed are summarized by mean and standard deviation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from ..config import Recipe
from ..metrics import FEWEST, PairedScore
from .model_scores import ScoredSet


@dataclass(frozen=True, slots=True)
class SeedScores:
    """The scores of the models of one recipe, by the name of the metric, with one value for each seed.

    `against_first` compares these models with the first recipe, by the metric that judges the task; None for the first.
    """

    names: Sequence[str]
    scores: Mapping[str, Sequence[float]]
    against_first: PairedScore | None = None

    def title(self) -> str:
        """Return the name of the first model and the number of seeds."""
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]}, {len(self.names)} seeds"

    def finding(self) -> str:
        """Say how these models differ from the first recipe."""
        compared = self.against_first
        if compared is None:
            return ""
        if compared.sentences < FEWEST:
            return f"too few pairs, {compared.sentences}"
        verdict = "no difference" if compared.better is None else ("worse", "better")[compared.better]
        return f"{verdict}, p = {compared.p_value:.3f}"


def mean_with_deviation(values: Sequence[float]) -> str:
    """Format the mean and the standard deviation of several values."""
    return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def group_by_seed(runs: Sequence[Path]) -> list[list[int]]:
    """Group the indices of runs whose recipes differ only in `train.seed`. Any other model is a group of its own."""
    groups: dict[object, list[int]] = {}
    for number, run in enumerate(runs):
        key: object = number
        if (run / "recipe.toml").is_file():
            recipe = Recipe.read(run / "recipe.toml")
            key = repr(replace(recipe, train=replace(recipe.train, seed=0)))
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def judging_metric(run: Path, scored: ScoredSet) -> str:
    """Return the metric that judges the task of a run: its early-stopping metric, or else the first telling metric.

    A telling metric can distinguish good translations of these pairs from bad ones.
    """
    telling = scored.telling_metrics()
    if (run / "recipe.toml").is_file():
        chosen = Recipe.read(run / "recipe.toml").train.early_stopping_metric
        if chosen in telling:
            return chosen
    return telling[0]


def compare_by_seed(systems: Sequence[ScoredSet], groups: Sequence[Sequence[int]], judge: str) -> list[SeedScores]:
    """Compare the scores of every group with the first, by `judge`. All systems must have translated the same pairs."""
    compared: list[SeedScores] = []
    for numbers in groups:
        members = [systems[number] for number in numbers]
        scores = {name: [one.counts[name].score for one in members] for name in members[0].telling_metrics()}
        against = None
        if compared:
            first = _pooled([systems[number] for number in groups[0]], judge)
            against = first.compare(_pooled(members, judge))[judge]
        compared.append(SeedScores([one.translated.name for one in members], scores, against))
    return compared


def _pooled(members: Sequence[ScoredSet], judge: str) -> ScoredSet:
    """Sum the counts of `judge` over all seeds, so that a bootstrap sample takes a sentence for all or for none."""
    counts = members[0].counts[judge]
    rows = np.sum([member.counts[judge].rows for member in members], 0)
    return ScoredSet(
        members[0].translated, {judge: members[0].metrics[judge]}, {judge: replace(counts, rows=rows)}
    )  # fmt: skip


def seed_table(compared: Sequence[SeedScores], titles: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the rows of the table as texts, the heading first. `titles` are the titles of the metrics."""
    names = list(compared[0].scores)
    judge = next((one.against_first.name for one in compared if one.against_first), "")
    yield ["", *(titles[name] for name in names), f"by {judge}, to the first" if judge else ""]
    for one in compared:
        yield [one.title(), *(mean_with_deviation(one.scores[name]) for name in names), one.finding()]


def align_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, with the first column aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        line = f"{first:<{widths[0]}}" + "".join(
            f"{cell:>{width + 3}}" for cell, width in zip(cells, widths[1:], strict=True)
        )
        yield line.rstrip()
