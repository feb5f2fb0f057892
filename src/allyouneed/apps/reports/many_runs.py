"""Three or more runs on one page that works offline: a table of their scores, and their curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ...evaluation.model_scores import ScoredSet, TranslatedSet
from ...evaluation.seeds import (
    align_table,
    compare_by_seed,
    group_by_seed,
    judging_metric,
    mean_with_deviation,
    seed_table,
)
from ...metrics import METRICS, make_metrics
from ...run.callback import Sample
from .curves import Curve, draw_curves
from .record import RunRecord, points_over_updates
from .report_page import AXES, build_report_page, paragraph, section, wide_table


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Several runs, the table of their scores on `pairs` pairs, and the table of their losses.

    `what` names the pairs.
    """

    runs: Sequence[RunRecord]
    what: str
    pairs: int
    scores: Sequence[Sequence[str]]
    losses: Sequence[Sequence[str]]

    def lines(self) -> Iterator[str]:
        """Yield both tables as text."""
        if self.scores:
            yield f"{self.pairs:,} {self.what} that all runs have translated:"
            yield from align_table(self.scores)
            yield ""
        else:
            yield f"The runs have no {self.what} in common, so their translations are not compared."
        yield from align_table(self.losses)


def compare_many_runs(
    folders: Sequence[Path], *, translations: Sequence[Sequence[Sample]] | None = None
) -> ComparedRuns:
    """Compare runs by `translations` of test pairs or, without these, by their stored validation translations.

    Only pairs that all runs have translated are compared. Runs that differ only in their seed share one row. Refuses a
    folder without a run, and damaged files.
    """
    runs = [RunRecord.read(folder) for folder in folders]
    names = [str(folder) for folder in folders]
    groups = group_by_seed(folders)
    kept = translations or [[Sample(**line) for line in run.outputs if line["score"] is not None] for run in runs]
    systems = _score_common(names, kept)
    scores: list[list[str]] = []
    if systems:
        judge = judging_metric(folders[0], systems[0])
        titles = {name: metric.title for name, metric in systems[0].metrics.items()}
        scores = list(seed_table(compare_by_seed(systems, groups, judge), titles))
    losses = [["", "validation loss", "choosing among", "updates", "minutes"]]
    losses += [_losses(names[numbers[0]], [runs[number] for number in numbers]) for numbers in groups]
    what = "test pairs" if translations else "validation pairs"
    return ComparedRuns(runs, what, len(systems[0].translated.sources) if systems else 0, scores, losses)


def _score_common(names: Sequence[str], translated: Sequence[Sequence[Sample]]) -> list[ScoredSet]:
    """Score all systems on the pairs that all have translated; [] if there are none."""
    outputs = [{(one.source, one.reference): one.output for one in samples} for samples in translated]
    common = [pair for pair in outputs[0] if all(pair in other for other in outputs[1:])]
    if not common:
        return []
    sources, references = [source for source, _ in common], [[reference] for _, reference in common]
    metrics = make_metrics(METRICS)
    return [
        ScoredSet.count(TranslatedSet(name, sources, references, [own[pair] for pair in common]), metrics)
        for name, own in zip(names, outputs, strict=True)
    ]


def _losses(name: str, runs: Sequence[RunRecord]) -> list[str]:
    last = [run.validations[-1] for run in runs if run.validations]
    title = name if len(runs) == 1 else f"{name}, {len(runs)} seeds"

    def cell(values: Sequence[float | None]) -> str:
        known = [value for value in values if value is not None]
        return mean_with_deviation(known) if known else ""

    keys = ("valid_loss", "perplexity", "step")
    return [title, *(cell([line[key] for line in last]) for key in keys), cell([line["seconds"] / 60 for line in last])]


def build_page_of_runs(compared: ComparedRuns) -> str:
    """Build the page as HTML."""
    return build_report_page(f"{len(compared.runs)} runs", _sections(compared))


def _sections(compared: ComparedRuns) -> Iterator[str]:
    yield f"<h1>{' · '.join(escape(run.name) for run in compared.runs)}</h1>"
    if compared.scores:
        header, *rows = compared.scores
        yield section(
            "Scores",
            paragraph(
                f"Of the {compared.pairs:,} {compared.what} that all runs translated. ± is the standard deviation over "
                "seeds; p is that of a paired bootstrap of the sentences, the seeds of a row together."
            ),
            wide_table("Scores", header, rows),
        )
    header, *rows = compared.losses
    yield section("Losses", wide_table("Losses", header, rows))

    def curves(*path: str) -> list[Curve]:
        return [
            Curve(run.name, points_over_updates(run.checkpoints(), *path), number % 5 + 1, dashed=number >= 5)
            for number, run in enumerate(compared.runs)
        ]

    drawn = [draw_curves("Validation loss", curves("valid_loss"), y_title="nats per token", log=True)]
    for score in dict.fromkeys(name for run in compared.runs for name in run.score_names()):
        drawn.append(draw_curves(f"Validation {score}", curves("scores", score), y_title="score, 0 to 100"))
    yield section("Curves", AXES, f'<div class="curves">{"".join(drawn)}</div>')
