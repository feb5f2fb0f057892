"""A run on one self-contained page of HTML: curves, settings, data, best and worst outputs.

It is made only from the files of the run.
"""

import tomllib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..corpus.data_report import REASONS, DataReport, PartReport, SourceCount
from ..errors import DataError
from ..files import parse_json, read_whole, write_whole
from .curves import Points, draw_curves
from .log import read_jsonl_lines

BEST_AND_WORST = 8


def write_report(folder: Path) -> None:
    """Write `report.html` for the run in a folder, up to now. Refuses damaged files."""
    try:
        _write(folder)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"metrics.jsonl, samples.jsonl, validation.jsonl or data-report.json in {folder} is damaged ({error!r}); "
            "remove it to continue"
        ) from error


def _write(folder: Path) -> None:
    validations = read_jsonl_lines(folder / "metrics.jsonl")
    for validation in validations:
        validation["scores"] = {name: value for name, value in validation["scores"].items() if value is not None}
    scored = [sample for sample in read_jsonl_lines(folder / "validation.jsonl") if sample["score"] is not None]
    outputs = sorted(scored, key=lambda sample: -sample["score"])
    settings = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace") if (folder / "log.txt").exists() else ""
    half = min(BEST_AND_WORST, len(outputs) // 2)
    parts = [
        f"<h1>{escape(folder.name)}</h1>",
        _summary(validations),
        '<div class="curves">' + "".join(_curves(validations)) + "</div>",
        _outputs("Best outputs", outputs[: half or 1]),
        _outputs("Worst outputs", outputs[::-1][:half]),
        _translations(read_jsonl_lines(folder / "samples.jsonl")),
        _data(folder / "data-report.json"),
        _settings(settings),
        f"<section><details><summary>Log</summary><pre>{escape(log)}</pre></details></section>",
    ]
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    page = PAGE.format(title=escape(folder.name), style=style, body="\n".join(parts))
    write_whole(folder / "report.html", page)


def _summary(validations: Sequence[dict[str, Any]]) -> str:
    if not validations:
        return ""
    last = validations[-1]
    facts = [("updates", f"{last['step']:,}"), ("minutes", f"{last['seconds'] / 60:,.1f}")]
    if last["valid_loss"] is not None:
        facts += [
            ("validation loss", f"{last['valid_loss']:.4f}"),
            ("perplexity", f"{last['perplexity']:,.3f}"),
            ("tokens correct", f"{last['accuracy']:.2f} %"),
        ]
    facts += [(name, f"{value:.2f}") for name, value in last["scores"].items()]
    if last["skipped"]:
        facts.append(("updates skipped", f"{last['skipped']:,}"))
    boxes = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in facts)
    best = ""
    if last["scores"]:
        name = next(iter(last["scores"]))
        top = max(validations, key=lambda validation: validation["scores"].get(name, float("-inf")))
        best = (
            f"<p>After the last validation. The highest {escape(name)} was {top['scores'][name]:.2f}, "
            f"after update {top['step']:,}.</p>"
        )
    return f'<dl class="facts">{boxes}</dl>{best}'


def _curves(validations: Sequence[dict[str, Any]]) -> list[str]:
    checkpoints = [validation for validation in validations if validation["averaged"] == 1]

    def over_updates(*path: str) -> Points:
        points = []
        for validation in validations if path[0] != "learning_rate" else checkpoints:
            value: Any = validation
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                points.append((float(validation["step"]), float(value)))
        return points

    names = dict.fromkeys(name for validation in validations for name in validation["scores"])
    return [
        draw_curves(
            "loss, nats per token", {"training": over_updates("loss"), "validation": over_updates("valid_loss")}
        ),
        draw_curves("scores", {name: over_updates("scores", name) for name in names}),
        draw_curves("tokens correct, %", {"validation": over_updates("accuracy")}),
        draw_curves("learning rate", {"learning rate": over_updates("learning_rate")}),
    ]


def _outputs(title: str, samples: Sequence[dict[str, Any]]) -> str:
    if not samples:
        return ""
    items = "".join(
        f"<li><b>{sample['score']:.1f}</b><dl>"
        f"<dt>source</dt><dd>{escape(sample['source'])}</dd>"
        f"<dt>output</dt><dd class='output'>{escape(sample['output']) or '<i>nothing</i>'}</dd>"
        f"<dt>reference</dt><dd>{escape(sample['reference'])}</dd></dl></li>"
        for sample in samples
    )
    return (
        f"<section><h2>{title}</h2><p>Validation pairs, by sentence score.</p>"
        f"<ul class='outputs'>{items}</ul></section>"
    )


def _translations(validations: Sequence[dict[str, Any]]) -> str:
    """The translations of a few sentences at several validations."""
    if not validations:
        return ""
    apart = max(1, len(validations) // 6)
    chosen = [*validations[:-1:apart], validations[-1]]
    parts = []
    for number, sample in enumerate(chosen[-1]["samples"]):
        rows = "".join(
            f"<tr><td>{validation['step']:,}</td><td>{escape(validation['samples'][number]['output'])}</td></tr>"
            for validation in chosen
            if number < len(validation["samples"])
        )
        parts.append(
            f"<details{' open' if number == 0 else ''}><summary>{escape(sample['source'])}</summary><table>{rows}"
            f"<tr><td>reference</td><td>{escape(sample['reference'])}</td></tr></table></details>"
        )
    return f"<section><h2>Translations during training</h2>{''.join(parts)}</section>"


def _data(path: Path) -> str:
    """The pairs read, used and dropped."""
    if not path.exists():
        return ""
    report = DataReport.from_table(parse_json(read_whole(path)))
    counts: list[tuple[str, PartReport | SourceCount]] = [*report.parts().items()]
    if len(report.sources) > 1:
        counts += [(source.name, source) for source in report.sources]
    rows = [(name, f"{count.read:,} pairs read, {count.used:,} used") for name, count in counts]
    rows += [("rule not used", line) for line in report.unused_rules()]
    sizes = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in rows)
    dropped = "".join(
        f"<tr><td>{name}: {escape(REASONS[rule])}</td><td>{broken.count:,}<br>"
        + "<br>".join(f"<i>{escape(example)}</i>" for example in broken.examples)
        + "</td></tr>"
        for name, part in report.parts().items()
        for rule, broken in part.dropped.items()
        if broken.count
    )
    table = f"<details><summary>Dropped, by rule</summary><table>{dropped}</table></details>" if dropped else ""
    return f"<section><h2>Data</h2><table>{sizes}</table>{table}</section>"


def _settings(recipe: dict[str, dict[str, Any]]) -> str:
    tables = "".join(
        f"<details><summary>[{escape(section)}]</summary><table>"
        + "".join(f"<tr><td>{escape(key)}</td><td>{escape(str(value))}</td></tr>" for key, value in table.items())
        + "</table></details>"
        for section, table in recipe.items()
    )
    return f"<section><h2>Settings</h2>{tables}</section>"


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
<body>
{body}
</body>
</html>
"""
