"""A run on one page of HTML, which needs nothing else: curves, settings, data, best and worst outputs.

It is made from the files of the run alone.
"""

import json
import tomllib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from ..corpus.data_report import REASONS, DataReport, PartReport, SourceCount
from ..errors import DataError
from ..files import write_whole
from .curves import Points, draw_curves
from .log import read_jsonl_lines

BEST_AND_WORST = 8


def write_report(folder: Path) -> None:
    """Write `report.html` for the run in a folder, as far as it has got. Refuses files that are damaged."""
    try:
        _write(folder)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise DataError(
            f"metrics.jsonl, samples.jsonl or validation.jsonl in {folder} is damaged ({error!r}); remove it to go on"
        ) from error


def _write(folder: Path) -> None:
    pauses = read_jsonl_lines(folder / "metrics.jsonl")
    for pause in pauses:
        pause["scores"] = {name: value for name, value in pause["scores"].items() if value is not None}
    scored = [sample for sample in read_jsonl_lines(folder / "validation.jsonl") if sample["score"] is not None]
    outputs = sorted(scored, key=lambda sample: -sample["score"])
    settings = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace") if (folder / "log.txt").exists() else ""
    half = min(BEST_AND_WORST, len(outputs) // 2)
    parts = [
        f"<h1>{escape(folder.name)}</h1>",
        _summary(pauses),
        '<div class="curves">' + "".join(_curves(pauses)) + "</div>",
        _outputs("Best outputs", outputs[: half or 1]),
        _outputs("Worst outputs", outputs[::-1][:half]),
        _course(read_jsonl_lines(folder / "samples.jsonl")),
        _data(folder / "data-report.json"),
        _settings(settings),
        f"<section><details><summary>What was told</summary><pre>{escape(log)}</pre></details></section>",
    ]
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    page = PAGE.format(title=escape(folder.name), style=style, body="\n".join(parts))
    write_whole(folder / "report.html", page)


def _summary(pauses: Sequence[dict[str, Any]]) -> str:
    if not pauses:
        return ""
    last = pauses[-1]
    facts = [("updates", f"{last['step']:,}"), ("minutes", f"{last['seconds'] / 60:,.1f}")]
    if last["valid_loss"] is not None:
        facts += [
            ("validation loss", f"{last['valid_loss']:.4f}"),
            ("perplexity", f"{last['perplexity']:,.3f}"),
            ("tokens right", f"{last['accuracy']:.2f} %"),
        ]
    facts += [(name, f"{value:.2f}") for name, value in last["scores"].items()]
    if last["skipped"]:
        facts.append(("updates skipped", f"{last['skipped']:,}"))
    boxes = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in facts)
    best = ""
    if last["scores"]:
        name = next(iter(last["scores"]))
        top = max(pauses, key=lambda pause: pause["scores"].get(name, float("-inf")))
        best = (
            f"<p>As of the last pause. The highest {escape(name)} was {top['scores'][name]:.2f}, "
            f"after update {top['step']:,}.</p>"
        )
    return f'<dl class="facts">{boxes}</dl>{best}'


def _curves(pauses: Sequence[dict[str, Any]]) -> list[str]:
    pauses_of_training = [pause for pause in pauses if pause["averaged"] == 1]

    def over_updates(*path: str) -> Points:
        found = []
        for pause in pauses if path[0] != "learning_rate" else pauses_of_training:
            value: Any = pause
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                found.append((float(pause["step"]), float(value)))
        return found

    names = dict.fromkeys(name for pause in pauses for name in pause["scores"])
    return [
        draw_curves("loss, nats a token", {"training": over_updates("loss"), "validation": over_updates("valid_loss")}),
        draw_curves("scores", {name: over_updates("scores", name) for name in names}),
        draw_curves("tokens right, %", {"validation": over_updates("accuracy")}),
        draw_curves("learning rate", {"rate": over_updates("learning_rate")}),
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


def _course(pauses: Sequence[dict[str, Any]]) -> str:
    """How the translations of a few sentences changed."""
    if not pauses:
        return ""
    apart = max(1, len(pauses) // 6)
    chosen = [*pauses[:-1:apart], pauses[-1]]
    parts = []
    for number, sample in enumerate(chosen[-1]["samples"]):
        rows = "".join(
            f"<tr><td>{pause['step']:,}</td><td>{escape(pause['samples'][number]['output'])}</td></tr>"
            for pause in chosen
            if number < len(pause["samples"])
        )
        parts.append(
            f"<details{' open' if number == 0 else ''}><summary>{escape(sample['source'])}</summary><table>{rows}"
            f"<tr><td>reference</td><td>{escape(sample['reference'])}</td></tr></table></details>"
        )
    return f"<section><h2>From pause to pause</h2>{''.join(parts)}</section>"


def _data(path: Path) -> str:
    """What became of the pairs that were read."""
    if not path.exists():
        return ""
    report = DataReport.from_table(json.loads(path.read_text(encoding="utf-8")))
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
