"""How the scores of one system, or of two compared, are printed, checked against limits, and written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .score_options import ScoreLimit

if TYPE_CHECKING:
    from ...evaluation import ScoredSet, TranslatedSet
    from ...metrics import Metric, PairedScore
    from ...run import Sample

_COLUMNS = ("source", "reference", "chrF2")  # of the list of wrong translations, besides the names of the systems


def count_and_show(
    translated: "Sequence[TranslatedSet]",
    metrics: "Mapping[str, Metric]",
    limits: Sequence[ScoreLimit],
    *,
    as_json: bool,
    wrong: str,
    no_worse: bool,
    output: Path | None = None,
) -> None:
    """Score one system, or compare two, print the scores, write `output`, and exit with code 1 if a limit is missed."""
    from ...evaluation import ScoredSet
    from ...files import to_json
    from ...metrics import FEWEST
    from .screen import console

    pairs = len(translated[0].sources)
    with console.status("counting"):  # TER takes long for long lines
        systems = [ScoredSet.count(one, metrics) for one in translated]
        comparison = systems[0].compare(systems[1]) if len(systems) == 2 else {}
    count = int(wrong) if wrong.isdecimal() else 0
    rows = list(_wrong_rows(systems)) if wrong else []
    last = systems[-1]
    name = last.translated.name
    missed = [limit.missed(last.counts[limit.name].score, last.metrics[limit.name], name) for limit in limits]
    worse = [score.name for score in comparison.values() if score.better == 0]
    if no_worse and worse:
        missed.append(f"{name} is significantly worse by {', '.join(worse)}")
    missed = list(filter(None, missed))
    if as_json:
        table = {**_as_table(systems, comparison), "missed": missed} | (
            {"wrong": rows[:count]} if wrong.isdecimal() else {}
        )
        print(to_json(table))
    else:
        print(*_lines(systems, comparison), sep="\n")
        width = max((len(name) for row in rows[:1] for name in row), default=0) + 2
        for row in rows[:count]:
            print("\n" + "\n".join(f"{name:<{width}}{value}" for name, value in row.items() if value))
    if pairs < FEWEST:
        verdict = ", and none is called better" if comparison else ""
        console.print(f"Fewer than {FEWEST} pairs ({pairs}): the intervals are too narrow{verdict}.")
    if output:
        _write_translations(output, translated)
    if wrong and not wrong.isdecimal():
        _write_rows(Path(wrong), rows)
    if missed:
        console.print(f"allyouneed: {'; '.join(missed)}")
        raise typer.Exit(1)


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
    """The wrong translations of one system, or those of two that the second has worse, worst first."""
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


def _change(samples: "tuple[Sample, Sample]") -> float:
    return samples[1].score - samples[0].score


def _write_rows(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    from ...files import write_whole

    lines = [list(rows[0])] if rows else []
    lines += [list(row.values()) for row in rows]
    write_whole(path, "".join("\t".join(" ".join(cell.split()) for cell in line) + "\n" for line in lines))


def _write_translations(path: Path, systems: "Sequence[TranslatedSet]") -> None:
    """Write the translations, a pair a line and those of two systems tab-separated; with all of a pair as .jsonl."""
    from ...files import to_json, write_whole

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
