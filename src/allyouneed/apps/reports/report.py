"""A run on one HTML page that works offline, made from its files: curves, settings, data, best and worst outputs."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from ...data.pairs import Pair
from ...data.report import REASONS, DataReport, PartReport, SourceCount
from ...errors import AllYouNeedError
from ...evaluation.baselines import nearest_training_pairs
from ...machine.files import to_json, write_whole
from ...run.callback import telling_scores
from ...run.log import FILM_FILE, read_jsonl_lines
from ..explain.component import explanation_style, film_script
from ..explain.film import changes
from .curves import Curve, draw_curves
from .record import HeldOutResult, Lines, RunRecord, damaged, describe_means, points_over_updates, training_points
from .report_page import (
    AXES,
    NOTHING_MOVES,
    PagePart,
    build_report_page,
    details,
    facts,
    pairs_table,
    paragraph,
    section,
    wide_table,
)

BEST_AND_WORST = 8
Nearest = Mapping[str, Sequence[Pair]]  # source → the training pairs nearest to it
NO_OUTPUTS = "The run has kept no scored translations of validation pairs."


def write_report(folder: Path, *, running: bool = False, path: Path | None = None) -> None:
    """Write the report of the run in a folder so far, to `report.html` there or to `path`. Refuses damaged files.

    The film of the run comes first, if there is one. The page of a run that is `running` reloads itself every few
    seconds.
    """
    run = RunRecord.read(folder)
    try:
        film = _film(folder)
        nearest = {} if running else nearest_training_pairs(folder, _shown_wrong(run))
        page = build_report_page(run.name, _sections(run, film, nearest), running=running, moving=film)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise damaged(folder, error) from error
    write_whole(path or folder / "report.html", page)


def try_to_write_report(folder: Path, message: Callable[[str, str], None], *, running: bool = False) -> None:
    """Write the report of a run. If that fails, pass a topic and a warning to `message`."""
    try:
        write_report(folder, running=running)
    except AllYouNeedError as error:
        message("warning", f"the report was not written: {error}")


def _shown_wrong(run: RunRecord) -> list[str]:
    """Return the sources whose wrong outputs the page shows."""
    samples = [*worst_outputs(run.outputs), *(map(asdict, run.test.samples) if run.test else ())]
    return list(dict.fromkeys(sample["source"] for sample in samples if sample["output"] != sample["reference"]))


def _sections(run: RunRecord, film: PagePart, nearest: Nearest) -> Iterator[str]:
    yield f"<h1>{escape(run.name)}</h1>"
    yield film.html
    yield _summary(run.validations, run.data)
    yield _held_out(run.test, nearest)
    yield AXES if run.validations else paragraph("The first validation is still to come.")
    yield f'<div class="curves">{"".join(_curves(run))}</div>'
    yield _loss_note(run)
    yield _validations(run)
    yield from _best_and_worst(run.outputs, nearest)
    yield _translations(run.samples)
    yield _data(run.data)
    yield _environment(run)
    yield _settings(run.settings)
    yield section("Log", details("All messages", f"<pre>{escape(run.log)}</pre>"))


def _film(run: Path) -> PagePart:
    frames = read_jsonl_lines(run / FILM_FILE)
    if len(frames) < 2:
        return NOTHING_MOVES
    texts = [{"text": frames[0]["text"], "films": [{"name": "", "frames": changes(frames)}]}]
    data = to_json(texts, separators=(",", ":")).replace("<", "\\u003c")
    html = (
        f"<section><h2>From noise to translation</h2><p><bdi>{escape(frames[0]['text'])}</bdi>, translated after "
        f"{len(frames) - 1} of the updates; in rows what the model writes, in columns what it attends to before.</p>"
        f'<div class="look film"></div><script type="application/json" id="film">{data}</script></section>'
    )
    play = "showFilm(document.querySelector('.film'), JSON.parse(document.getElementById('film').textContent));"
    return PagePart(html, explanation_style(), f"{{ {film_script()} {play} }}")


def _summary(validations: Lines, data: DataReport | None) -> str:
    if not validations:
        return ""
    last = validations[-1]
    pairs = [("updates", f"{last['step']:,}"), ("minutes", f"{last['seconds'] / 60:,.1f}")]
    if last["valid_loss"] is not None:
        tokens = data.vocabulary[-1] if data and data.vocabulary else 0
        guess, of_all = (f" (a guess: {math.log(tokens):.2f})", f" of {tokens:,}") if tokens else ("", "")
        pairs += [
            (f"validation loss{guess}", f"{last['valid_loss']:.4f}"),
            ("e^loss: it chooses among", f"{last['perplexity']:,.2f}{of_all} tokens"),
            ("tokens correct", f"{last['accuracy']:.2f} %"),
        ]
    scores = {name: score for name, score in telling_scores(last["scores"]).items() if score is not None}
    pairs += [(name, f"{score:.2f}") for name, score in scores.items()]
    if speeds := [line["tokens_per_second"] for line in validations if line.get("tokens_per_second")]:
        pairs.append(("target tokens per second", f"{sum(speeds) / len(speeds):,.0f}"))
    if last["skipped"]:
        pairs.append(("updates skipped", f"{last['skipped']:,}"))
    best = ""
    if scores:
        name = next(iter(scores))
        top = max(validations, key=lambda validation: validation["scores"].get(name, float("-inf")))
        best = paragraph(
            f"After the last validation. The highest {name} was {top['scores'][name]:.2f}, "
            f"after update {top['step']:,}."
        )
    return facts(pairs) + best


def _held_out(test: HeldOutResult | None, nearest: Nearest) -> str:
    """Write the scores on test pairs next to the baselines, what to try next, and some translations."""
    if test is None:
        return ""
    advice = "".join(f"<li>{escape(line)}</li>" for line in test.advice)
    samples = [asdict(sample) for sample in test.samples]
    return section(
        "Test pairs",
        paragraph(
            "No update and no choice of a model depended on these pairs. In brackets: 95 % intervals, bootstrap."
        ),
        wide_table("Test pairs", test.header(), test.rows()),
        *(paragraph(f"{note}.") for note in test.notes),
        *([f"<h3>What to try next</h3><ul class='advice'>{advice}</ul>"] if advice else []),
        details(f"{len(samples)} translations of test pairs", _output_list(samples, nearest)),
    )


def draw_losses(run: RunRecord) -> str:
    """Draw the losses of training and validation over the updates; "" if there are none yet."""
    return draw_curves(
        "Loss",
        [
            Curve("training", training_points(run, "loss")),
            Curve("validation", points_over_updates(run.checkpoints(), "valid_loss"), 2),
        ],
        y_title="nats per token",
        log=True,
        warmup=_warmup_updates(run),
    )


def draw_scores(run: RunRecord) -> str:
    """Draw the scores of the validation pairs over the updates; "" if there are none yet."""
    scores = [
        Curve(name, points_over_updates(run.checkpoints(), "scores", name), number)
        for number, name in enumerate(run.score_names(), start=1)
    ]
    return draw_curves("Scores of validation pairs", scores, y_title="score, 0 to 100", warmup=_warmup_updates(run))


def _curves(run: RunRecord) -> Iterator[str]:
    yield draw_losses(run)
    yield draw_scores(run)
    warmup, validations = _warmup_updates(run), run.checkpoints()
    for title, curve, y_title in (
        ("Tokens predicted correctly", Curve("validation", points_over_updates(validations, "accuracy"), 2), "percent"),
        ("Learning rate", Curve("learning rate", training_points(run, "learning_rate"), 3), "learning rate"),
        ("Gradient norm", Curve("before clipping", training_points(run, "gradient_norm"), 4), "norm"),
        ("Speed", Curve("training", points_over_updates(validations, "tokens_per_second"), 5), "target tokens/s"),
    ):  # fmt: skip
        log = curve.name in ("learning rate", "before clipping")
        yield draw_curves(title, [curve], y_title=y_title, log=log, warmup=warmup)


def _warmup_updates(run: RunRecord) -> int:
    """Return the length of the warmup. A time budget compresses it, so it ends at the highest learning rate."""
    if run.setting("train", "minutes", 0.0):
        return int(max(training_points(run, "learning_rate"), key=lambda point: point[1], default=(0.0, 0.0))[0])
    return int(run.setting("train", "warmup", 0))


def _loss_note(run: RunRecord) -> str:
    if not run.validations:
        return ""
    model, train = run.settings.get("model", {}), run.settings.get("train", {})
    extras = {
        "dropout": model.get("dropout"),
        "label smoothing": train.get("label_smoothing"),
        "R-Drop": train.get("r_drop"),
    }
    used = [f"{name} {value:g}" for name, value in extras.items() if value]
    difference = f"; the training loss is with {' and '.join(used)}, the validation loss without" if used else ""
    return paragraph(
        f"Losses are means per target token{difference}. The speed counts padding, and leaves out validations."
        + "".join(f" {note}" for note in describe_means(run))
    )


def _validations(run: RunRecord) -> str:
    if not run.validations:
        return ""
    names = run.score_names()
    header = ["update", "training loss", "validation loss", "choosing among", "correct, %", *names]
    header += ["learning rate", "gradient norm", "tokens/s", "minutes"]

    def row(line: dict[str, Any]) -> list[str]:
        values = [line["loss"], line["valid_loss"], line["perplexity"], line["accuracy"]]
        values += [line["scores"].get(name) for name in names]
        values += [line["learning_rate"], line.get("gradient_norm"), line.get("tokens_per_second")]
        numbers = ["" if value is None else f"{value:.4g}" for value in [*values, line["seconds"] / 60]]
        average = f" (mean of {line['averaged']})" if line["averaged"] > 1 else ""
        return [f"{line['step']:,}{average}", *numbers]

    return details("The numbers of every validation", wide_table("Validations", header, map(row, run.validations)))


def worst_outputs(samples: Lines) -> Lines:
    """Return the outputs with the lowest scores, the lowest first; none if all scores are equal."""
    outputs = _by_score(samples)
    return [sample for sample in outputs[::-1][: _half(outputs)] if sample["score"] < outputs[0]["score"]]


def _best_and_worst(samples: Lines, nearest: Nearest) -> Iterator[str]:
    outputs = _by_score(samples)
    yield _outputs("Best outputs", outputs[: _half(outputs) or 1], NO_OUTPUTS, {})
    top = outputs[0]["score"] if outputs else 0.0
    same = f"None: all {len(outputs):,} translated validation pairs have the same score, {top:g}."
    yield _outputs("Worst outputs", worst_outputs(samples), same if outputs else NO_OUTPUTS, nearest)


def _by_score(samples: Lines) -> Lines:
    """Sort the outputs that have a score, the best first."""
    return sorted((sample for sample in samples if sample["score"] is not None), key=lambda sample: -sample["score"])


def _half(outputs: Lines) -> int:
    """Return how many outputs are listed as best; the same number is listed as worst."""
    return min(BEST_AND_WORST, len(outputs) // 2)


def _outputs(title: str, samples: Sequence[dict[str, Any]], none: str, nearest: Nearest) -> str:
    if not samples:
        return section(title, paragraph(none))
    return section(title, paragraph("Validation pairs, by sentence score."), _output_list(samples, nearest))


def _output_list(samples: Sequence[dict[str, Any]], nearest: Nearest) -> str:
    """Write samples and, under each wrong one, the training pairs nearest to its source."""

    def known(sample: dict[str, Any]) -> str:
        pairs = nearest.get(sample["source"], []) if sample["output"] != sample["reference"] else []
        shown = (f"<dd dir='auto'>{escape(pair.source)} → {escape(pair.target)}</dd>" for pair in pairs)
        return f"<dt>nearest in training</dt>{''.join(shown)}" if pairs else ""

    items = "".join(
        f"<li><b>{sample['score']:.1f}</b><dl>"
        f"<dt>source</dt><dd dir='auto'>{escape(sample['source'])}</dd>"
        f"<dt>output</dt><dd dir='auto' class='output'>{escape(sample['output']) or '<i>nothing</i>'}</dd>"
        f"<dt>reference</dt><dd dir='auto'>{escape(sample['reference'])}</dd>{known(sample)}</dl></li>"
        for sample in samples
    )
    return f"<ul class='outputs'>{items}</ul>"


def _translations(validations: Lines) -> str:
    """Write the translations of a few sentences at several validations."""
    if not validations:
        return ""
    apart = max(1, len(validations) // 6)
    chosen = [*validations[:-1:apart], validations[-1]]
    parts = []
    for number, sample in enumerate(chosen[-1]["samples"]):
        rows = [
            (f"{validation['step']:,}", other["output"])
            for validation in chosen
            for other in validation["samples"]
            if (other["source"], other["reference"]) == (sample["source"], sample["reference"])
        ]
        table = pairs_table([*rows, ("reference", sample["reference"])])
        parts.append(details(sample["source"], table, is_open=number == 0))
    return section("Translations during training", *parts)


def _data(report: DataReport | None) -> str:
    """Write the number of pairs read, used and dropped."""
    if report is None:
        return ""
    counts: list[tuple[str, PartReport | SourceCount]] = [*report.parts().items()]
    if len(report.sources) > 1:
        counts += [(source.name, source) for source in report.sources]
    rows = [(name, f"{count.read:,} pairs read, {count.used:,} used") for name, count in counts]
    rows += [("rule not used", line) for line in report.unused_rules()]
    dropped = "".join(
        f"<tr><th scope='row'>{name}: {escape(REASONS[rule])}</th><td>{broken.count:,}<br>"
        + "<br>".join(f"<bdi><i>{escape(example)}</i></bdi>" for example in broken.examples)
        + "</td></tr>"
        for name, part in report.parts().items()
        for rule, broken in part.dropped.items()
        if broken.count
    )
    table = details("Dropped, by rule", f"<table>{dropped}</table>") if dropped else ""
    return section("Data", pairs_table(rows), table)


def _environment(run: RunRecord) -> str:
    """List every start of the run: time, command and machine."""
    if not run.environment:
        return ""
    parts = []
    for number, line in enumerate(run.environment):
        rows = [(key, str(value)) for key, value in line.items() if key not in ("step", "time")]
        what = f"resumed after update {line['step']:,}" if line["step"] else "started"
        parts.append(details(f"{line['time']}: {what}", pairs_table(rows), is_open=number == len(run.environment) - 1))
    return section("Environment and command", *parts)


def _settings(recipe: dict[str, dict[str, Any]]) -> str:
    tables = [
        details(f"[{name}]", pairs_table([(key, str(value)) for key, value in table.items()]))
        for name, table in recipe.items()
    ]
    return section("Settings", *tables)
