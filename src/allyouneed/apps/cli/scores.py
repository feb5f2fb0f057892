"""The options of commands that score translations; and how scores are printed, compared with limits, and written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ...evaluation import ScoredSet, TranslatedSet
    from ...evaluation.seeds import SeedScores
    from ...metrics import Metric, PairedScore, References
    from ...run import Sample


@dataclass(frozen=True, slots=True)
class ScoreLimit:
    """The lowest or the highest value that a score may have."""

    name: str
    value: float

    def missed(self, score: float, metric: "Metric", system: str) -> str:
        """Describe in one line a score beyond the limit; "" if the score is within the limit."""
        if score >= self.value if metric.higher_is_better else score <= self.value:
            return ""
        option = "--at-least" if metric.higher_is_better else "--at-most"
        return f"{metric.title} of {system} is {score:.2f}, and {option} asks for {self.value:g}"


def parse_limits(
    metrics: "Mapping[str, Metric]", at_least: Sequence[str] | None, at_most: Sequence[str] | None
) -> list[ScoreLimit]:
    """Parse the limits in options.

    Refuses an unknown metric, text that is not a number, and a limit on the wrong side.
    """
    from ...errors import ConfigError

    limits = []
    for option, texts in (("--at-least", at_least or ()), ("--at-most", at_most or ())):
        for text in texts:
            name, _, number = text.partition("=")
            if name not in metrics:
                raise ConfigError(
                    f'{option} {text}: metric "{name}" is not computed; computed are {", ".join(metrics)}'
                )
            if metrics[name].higher_is_better != (option == "--at-least"):
                other = "--at-least" if metrics[name].higher_is_better else "--at-most"
                raise ConfigError(f"{option} {text}: use {other} {text}")
            limits.append(ScoreLimit(name, _number(number)))
            if not isfinite(limits[-1].value):
                raise ConfigError(f"{option} is written METRIC=NUMBER, like chrf=55; got {text!r}")
    return limits


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


# Columns of the list of wrong translations, besides the names of the systems.
_COLUMNS = ("source", "reference", "chrF2")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scoring:
    """How a command scores translations: its options, their checks, and the metrics that they ask for."""

    metrics: Annotated[
        str | None, typer.Option(metavar="METRIC,…", help="Any of bleu, chrf, chrf++, ter, cer, wer, exact.")
    ] = None
    tokenize: Annotated[str, typer.Option(help='sacrebleu\'s tokenizer for BLEU; "none" for tokenized text.')] = "auto"
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False
    wrong: Annotated[str, typer.Option(metavar="N|FILE", help="List the N worst translations, or all in FILE.")] = ""
    at_least: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=NUMBER", help="Exit with 1 if this score is lower. Repeatable."),
    ] = None
    at_most: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=NUMBER", help="Exit with 1 if this error rate is higher.")
    ] = None
    no_worse: Annotated[
        bool, typer.Option("--no-worse", help="Exit with 1 if the second model is worse (p < 0.05).")
    ] = False
    comet: Annotated[
        Path | None, typer.Option(metavar="CHECKPOINT", help="Also score with COMET (comet-score) and this model.")
    ] = None

    def check(self, *, others: Iterable[Path | None]) -> None:
        """Refuse an unknown tokenizer, a `wrong` that is not a count, and an output that exists or is in `others`."""
        from ...errors import ConfigError
        from ...machine.files import check_output_file
        from ...metrics import refuse_unknown_tokenizer

        refuse_unknown_tokenizer(self.tokenize)
        if not self.wrong or self.wrong.isdecimal():
            return
        if self.wrong.startswith("-") or isfinite(_number(self.wrong)):
            raise ConfigError(f"--wrong takes a whole number from 0 or a file; got {self.wrong}")
        check_output_file(Path(self.wrong), what="the list", overwrite=self.overwrite, inputs=filter(None, others))

    def prepare(
        self, sources: Sequence[str], references: "References"
    ) -> "tuple[dict[str, Metric], Sequence[ScoreLimit]]":
        """Make the chosen metrics, by default all; COMET, if there is a checkpoint; and the limits of the scores.

        Refuses a significance test if there are too few sentences for it. Warns of references that are already
        tokenized, which BLEU would tokenize again.
        """
        from ...errors import ConfigError
        from ...metrics import FEWEST, METRICS, looks_tokenized, make_metrics
        from .screen import console

        chosen = METRICS if self.metrics is None else [name.strip() for name in self.metrics.split(",")]
        metrics = make_metrics(chosen, tokenize=self.tokenize)
        if self.comet:
            from ...evaluation.comet import make_comet

            metrics["comet"] = make_comet(self.comet, sources)
        if self.tokenize != "none" and looks_tokenized(references):
            console.print(
                'the references look tokenized: they have spaces before full stops; with "--tokenize none" '
                "BLEU does not tokenize them again"
            )
        if self.no_worse and len(sources) < FEWEST:
            raise ConfigError(
                f"--no-worse needs at least {FEWEST} pairs to tell a difference from chance; got {len(sources)}"
            )
        return metrics, parse_limits(metrics, self.at_least, self.at_most)

    def show(
        self,
        translated: "Sequence[TranslatedSet]",
        metrics: "Mapping[str, Metric]",
        limits: Sequence[ScoreLimit],
        output: Path | None = None,
        runs: Sequence[Path] = (),
    ) -> None:
        """Score one system or compare several: print the scores, write `output`, and exit with 1 if a limit is missed.

        `runs` are the folders of the systems. Wrong translations are listed with the most similar training pairs.
        """
        from ...evaluation import ScoredSet
        from ...metrics import FEWEST
        from .screen import console

        pairs = len(translated[0].sources)
        with console.rich.status("counting"):  # TER is slow for long lines
            systems = [ScoredSet.count(one, metrics) for one in translated]
            comparison = systems[0].compare(systems[1]) if len(systems) == 2 else {}
        rows = list(_wrong_rows(systems)) if self.wrong else []
        rows = rows[: int(self.wrong)] if self.wrong.isdecimal() else rows
        rows = _with_nearest_pairs(rows, runs[-1]) if runs else rows
        missed = self._missed(systems[-1], comparison, limits)
        table = _compared_by_seed(systems, runs) if len(systems) > 2 else []
        self._print(systems, comparison, rows, missed, table)
        if pairs < FEWEST:
            verdict = ", and none is called better" if comparison else ""
            console.print(f"Fewer than {FEWEST} pairs ({pairs}): the intervals are too narrow{verdict}.")
        if output:
            _write_translations(output, translated)
        if self.wrong and not self.wrong.isdecimal():
            _write_rows(Path(self.wrong), rows)
        if missed:
            console.print(f"allyouneed: {'; '.join(missed)}")
            raise typer.Exit(1)

    def _missed(
        self, system: "ScoredSet", comparison: "Mapping[str, PairedScore]", limits: Sequence[ScoreLimit]
    ) -> list[str]:
        """Say which limits the last system misses and, with `--no-worse`, in which metrics it is worse."""
        name = system.translated.name
        lines = [limit.missed(system.counts[limit.name].score, system.metrics[limit.name], name) for limit in limits]
        worse = [score.name for score in comparison.values() if score.better == 0]
        if self.no_worse and worse:
            lines.append(f"{name} is significantly worse by {', '.join(worse)}")
        return list(filter(None, lines))

    def _print(
        self,
        systems: "Sequence[ScoredSet]",
        comparison: "Mapping[str, PairedScore]",
        rows: Sequence[Mapping[str, str]],
        missed: Sequence[str],
        by_seed: "Sequence[SeedScores]",
    ) -> None:
        """Print the scores, and the wrong translations `rows` if their number is given."""
        from ...machine.files import to_json

        lists_wrong = self.wrong.isdecimal()
        worst = rows if lists_wrong else []
        if self.as_json:
            table = {**_as_table(systems, comparison), **_seeds_as_table(by_seed), "missed": missed}
            print(to_json(table | {"wrong": worst} if lists_wrong else table))
            return
        print(*(_seed_lines(systems, by_seed) if by_seed else _lines(systems, comparison)), sep="\n")
        width = max((len(name) for row in rows[:1] for name in row), default=0) + 2
        for row in worst:
            print("\n" + "\n".join(f"{name:<{width}}{value}" for name, value in row.items() if value))


def _lines(systems: "Sequence[ScoredSet]", comparison: "Mapping[str, PairedScore]") -> Iterator[str]:
    telling = systems[0].telling_metrics()
    if not comparison:
        for one in (interval for name, interval in systems[0].intervals().items() if name in telling):
            ends = f"{one.low:>6.2f} to {one.high:.2f}"
            yield f"{one.name:<12}{one.value:>7.2f}   {ends:<16} {one.signature}"
        return
    names = [one.translated.name for one in systems]
    first, second = (max(8, len(name) + 2) for name in names)
    yield f"{'':<12}{names[0]:>{first}}{names[1]:>{second}}{'difference':>12}{'p':>8}"
    for score in (score for name, score in comparison.items() if name in telling):
        finding = "" if score.better is None else f"   {names[score.better]} is better"
        yield (
            f"{score.name:<12}{score.first:>{first}.2f}{score.second:>{second}.2f}"
            f"{score.second - score.first:>+12.2f}{score.p_value:>8.3f}{finding}"
        )


def _compared_by_seed(systems: "Sequence[ScoredSet]", runs: Sequence[Path]) -> "list[SeedScores]":
    from ...evaluation.seeds import compare_by_seed, group_by_seed, judging_metric

    groups = group_by_seed(runs) if runs else [[number] for number in range(len(systems))]
    judge = judging_metric(runs[0], systems[0]) if runs else systems[0].telling_metrics()[0]
    return compare_by_seed(systems, groups, judge)


def _seed_lines(systems: "Sequence[ScoredSet]", compared: "Sequence[SeedScores]") -> Iterator[str]:
    from ...evaluation.seeds import align_table, seed_table

    titles = {name: metric.title for name, metric in systems[0].metrics.items()}
    yield from align_table(list(seed_table(compared, titles)))


def _seeds_as_table(compared: "Sequence[SeedScores]") -> dict[str, Any]:
    rows = [
        {
            "systems": one.names,
            "scores": one.scores,
            "p_value": one.against_first.p_value if one.against_first else None,
            "finding": one.finding(),
        }
        for one in compared
    ]
    return {"by_seed": rows} if rows else {}


def _as_table(systems: "Sequence[ScoredSet]", comparison: "Mapping[str, PairedScore]") -> dict[str, Any]:
    names = [one.translated.name for one in systems]
    table: dict[str, Any] = {
        "pairs": len(systems[0].translated.sources),
        "systems": [
            {
                "name": one.translated.name,
                "scores": {
                    name: {"score": score.value, "low": score.low, "high": score.high, "signature": score.signature}
                    for name, score in one.intervals().items()
                },
            }
            for one in systems
        ],
    }
    if comparison:
        table["comparison"] = {
            name: {
                "difference": score.second - score.first,
                "p_value": score.p_value,
                "better": None if score.better is None else names[score.better],
            }
            for name, score in comparison.items()
        }
    return table


def _wrong_rows(systems: "Sequence[ScoredSet]") -> Iterator[dict[str, str]]:
    """Yield the wrong translations of one system, or those that the second of two translates worse, worst first."""
    if len(systems) == 1:
        for sample in systems[0].translated.wrong():
            yield {
                "source": sample.source, "output": sample.output, "reference": sample.reference,
                "chrF2": f"{sample.score:.1f}",
            }  # fmt: skip
        return
    first, second = (one.translated for one in systems)
    names = [f"{one.name} (output)" if one.name in _COLUMNS else one.name for one in (first, second)]
    changes = sorted(zip(first.samples(), second.samples(), strict=True), key=_change)
    for before, after in changes:
        if _change((before, after)) < 0:
            yield {
                "source": before.source, names[0]: before.output, names[1]: after.output,
                "reference": after.reference, "chrF2": f"{before.score:.1f} to {after.score:.1f}",
            }  # fmt: skip


def _with_nearest_pairs(rows: Sequence[Mapping[str, str]], run: Path) -> list[dict[str, str]]:
    """Add to each row the training pairs of the run with the most similar sources."""
    from ...evaluation.baselines import nearest_training_pairs

    nearest = nearest_training_pairs(run, [row["source"] for row in rows])
    width = max(map(len, nearest.values()), default=0)
    found = []
    for row in rows:
        pairs = [f"{pair.source} → {pair.target}" for pair in nearest.get(row["source"], [])]
        cells = pairs + [""] * (width - len(pairs))
        found.append({**row, **{f"training {number}": cell for number, cell in enumerate(cells, start=1)}})
    return found


def _change(samples: "tuple[Sample, Sample]") -> float:
    return samples[1].score - samples[0].score


def _write_rows(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    from ...machine.files import write_whole

    lines = [list(rows[0])] if rows else []
    lines += [list(row.values()) for row in rows]
    write_whole(path, "".join("\t".join(" ".join(cell.split()) for cell in line) + "\n" for line in lines))


def _write_translations(path: Path, systems: "Sequence[TranslatedSet]") -> None:
    """Write one pair per line, with the translations of two systems separated by tabs; to .jsonl, with all details."""
    from ...machine.files import to_json, write_whole

    if path.suffix == ".jsonl":
        samples = [[asdict(sample) for sample in one.samples()] for one in systems]
        rows = [
            {"source": some[0]["source"], "references": list(references),
             "outputs": {one.name: sample["output"] for one, sample in zip(systems, some, strict=True)},
             "chrf": {one.name: sample["score"] for one, sample in zip(systems, some, strict=True)}}
            for *some, references in zip(*samples, systems[0].references, strict=True)
        ]  # fmt: skip
        write_whole(path, "".join(to_json(row) + "\n" for row in rows))
        return
    outputs = zip(*(one.outputs for one in systems), strict=True)
    write_whole(path, "".join("\t".join(" ".join(text.split("\t")) for text in some) + "\n" for some in outputs))
