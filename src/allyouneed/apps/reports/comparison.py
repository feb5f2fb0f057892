"""Two runs on one page that works offline: curves, settings, scores with a test, and sentences that changed most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...metrics import FEWEST, PairedScore, paired_bootstrap
from ...run.callback import Sample
from .curves import Curve, draw_curves
from .record import RunRecord, describe_means, points_over_updates, training_points
from .report_page import AXES, build_report_page, facts, paragraph, section, wide_table

MOST_CHANGED = 8  # sentences that became better, and that became worse


@dataclass(frozen=True, slots=True)
class PairedOutput:
    """The translations of one pair by two models, with their sentence scores."""

    source: str
    reference: str
    outputs: tuple[str, str]
    scores: tuple[float, float]

    @property
    def gain(self) -> float:
        """The second score minus the first."""
        return self.scores[1] - self.scores[0]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, their translations of the same pairs, and the scores of these translations. `what` names the pairs."""

    first: RunRecord
    second: RunRecord
    what: str
    pairs: Sequence[PairedOutput]
    scores: Sequence[PairedScore]

    def names(self) -> tuple[str, str]:
        """Return the names of the folders, or "first" and "second" if these are equal."""
        return (self.first.name, self.second.name) if self.first.name != self.second.name else ("first", "second")

    def summary(self) -> list[str]:
        """Return a line for each score, or the reason why there is none."""
        if not self.scores:
            return [f"The two runs have no {self.what} in common, so their translations are not compared."]
        a, b = self.names()
        lines = [
            f"{one.name:<6} {a} {one.first:.2f}, {b} {one.second:.2f}: {_verdict(one, a, b)}" for one in self.scores
        ]
        return [f"{len(self.pairs):,} {self.what}, paired bootstrap:", *lines]


def compare_runs(first: Path, second: Path, *, translations: Sequence[Sequence[Sample]] | None = None) -> Comparison:
    """Compare two runs by `translations` of test pairs or, without these, by their stored validation translations.

    Only pairs that both runs have translated are compared. Refuses a folder without a run, and damaged files.
    """
    runs = RunRecord.read(first), RunRecord.read(second)
    try:
        kept = ([Sample(**line) for line in run.outputs if line["score"] is not None] for run in runs)
        pairs = _pair_up(*(translations or kept))
    except (KeyError, TypeError) as error:
        raise DataError(f"validation.jsonl in {first} or {second} is damaged ({error!r})") from error
    scores = []
    if pairs:
        outputs = [[pair.outputs[side] for pair in pairs] for side in (0, 1)]
        scores = paired_bootstrap(outputs[0], outputs[1], [pair.reference for pair in pairs])
    return Comparison(*runs, "test pairs" if translations else "validation pairs", pairs, scores)


def _pair_up(first: Sequence[Sample], second: Sequence[Sample]) -> list[PairedOutput]:
    others = {(sample.source, sample.reference): sample for sample in second}
    return [
        PairedOutput(one.source, one.reference, (one.output, other.output), (one.score, other.score))
        for one in first
        if (other := others.get((one.source, one.reference)))
    ]


def build_comparison_page(comparison: Comparison) -> str:
    """Build the page of a comparison as HTML. Refuses damaged files."""
    a, b = comparison.names()
    try:
        return build_report_page(f"{a} and {b}", _sections(comparison))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"a file of {a} or {b} is damaged ({error!r}); remove it to continue") from error


def _sections(comparison: Comparison) -> Iterator[str]:
    a, b = map(escape, comparison.names())
    yield f'<h1><span class="run c1">{a}</span> and <span class="run c2 dashed">{b}</span></h1>'
    yield _facts(comparison)
    yield _significance(comparison)
    yield section("Curves", AXES, f'<div class="curves">{"".join(_curves(comparison))}</div>', _curves_note(comparison))
    runs, names = (comparison.first, comparison.second), comparison.names()
    yield _differing("Settings that differ", names, *(_flat(run.settings) for run in runs))
    yield _differing("Environments that differ", names, *((run.environment or [{}])[-1] for run in runs))
    yield from _changed(comparison)


def _facts(comparison: Comparison) -> str:
    rows = []
    for run, name in zip((comparison.first, comparison.second), comparison.names(), strict=True):
        last = run.validations[-1] if run.validations else None
        if last:
            loss = "" if last["valid_loss"] is None else f"validation loss {last['valid_loss']:.4f}"
            rows.append((name, f"{last['step']:,} updates, {last['seconds'] / 60:,.1f} minutes", loss))
        else:
            rows.append((name, "no validation yet", ""))
    return facts((name, ", ".join(filter(None, texts))) for name, *texts in rows)


def _significance(comparison: Comparison) -> str:
    a, b = comparison.names()
    if not comparison.scores:
        return section("Scores", *map(paragraph, comparison.summary()))
    kind = comparison.what
    caution = "" if kind == "test pairs" else (
        " Each run's kept model made them, and they may have been used to choose it; "
        "allyouneed report RUN RUN --test translates the test pairs."
    )  # fmt: skip
    rows = [
        (score.name, f"{score.first:.2f}", f"{score.second:.2f}", f"{score.second - score.first:+.2f}",
         "1" if score.first == score.second else f"{score.p_value:.3f}", _verdict(score, a, b))
        for score in comparison.scores
    ]  # fmt: skip
    signatures = "".join(f"<p><code>{escape(score.signature)}</code></p>" for score in comparison.scores)
    return section(
        "Scores",
        paragraph(f"Of the {len(comparison.pairs):,} {kind} that both runs translated.{caution}"),
        wide_table("Scores", ("score", a, b, "difference", "p", "what this means"), rows),
        paragraph(
            "p is that of sacrebleu's paired bootstrap (Koehn, 2004), 1,000 samples of the sentences: an estimate of "
            "how probable so large a difference would be if the models were equally good."
        ),
        signatures,
    )


def _verdict(score: PairedScore, a: str, b: str) -> str:
    if score.first == score.second:
        return "equal"
    if score.sentences < FEWEST:
        finding = f"too few pairs for a finding, {score.sentences}"
    else:
        finding = "no significant difference" if score.better is None else f"{(a, b)[score.better]} is better"
    return f"{finding} (p = {score.p_value:.3f})"


def _curves(comparison: Comparison) -> Iterator[str]:
    runs, names = (comparison.first, comparison.second), comparison.names()

    def both(*path: str, training: bool = False) -> list[Curve]:
        return [
            Curve(
                name,
                training_points(run, path[0]) if training else points_over_updates(run.checkpoints(), *path),
                number,
                dashed=number == 2,
            )
            for number, (run, name) in enumerate(zip(runs, names, strict=True), start=1)
        ]

    yield draw_curves("Validation loss", both("valid_loss"), y_title="nats per token", log=True)
    yield draw_curves("Training loss", both("loss", training=True), y_title="nats per token", log=True)
    for score in dict.fromkeys(name for run in runs for name in run.score_names()):
        yield draw_curves(f"Validation {score}", both("scores", score), y_title="score, 0 to 100")
    yield draw_curves("Tokens predicted correctly", both("accuracy"), y_title="percent")
    yield draw_curves("Learning rate", both("learning_rate", training=True), y_title="learning rate", log=True)
    yield draw_curves("Gradient norm", both("gradient_norm", training=True), y_title="norm before clipping", log=True)
    yield draw_curves("Speed", both("tokens_per_second"), y_title="target tokens per second")


def _curves_note(comparison: Comparison) -> str:
    measures = [
        tuple(run.setting("train", key, 0.0) for key in ("label_smoothing", "r_drop"))
        for run in (comparison.first, comparison.second)
    ]
    differ = (
        "The training losses are different measures, because label smoothing or R-Drop differ; the validation losses "
        "are without both."
    )
    notes = [differ] * (measures[0] != measures[1]) + describe_means(comparison.first, comparison.second)
    return "".join(map(paragraph, notes))


def _flat(recipe: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}.{key}": value for name, table in recipe.items() for key, value in table.items()}


def _differing(title: str, runs: tuple[str, str], first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    rows = [
        (name, str(first.get(name, "")), str(second.get(name, "")))
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name) and name not in ("time", "step")
    ]
    return section(title, wide_table(title, ("name", *runs), rows, wraps=True) if rows else paragraph("None."))


def _changed(comparison: Comparison) -> Iterator[str]:
    if not comparison.pairs:
        return
    order = sorted(comparison.pairs, key=lambda pair: pair.gain)
    b = comparison.names()[1]
    worse = [pair for pair in order[:MOST_CHANGED] if pair.gain < 0]
    better = [pair for pair in order[::-1][:MOST_CHANGED] if pair.gain > 0]
    equal = sum(pair.outputs[0] == pair.outputs[1] for pair in comparison.pairs)
    yield section(
        "Sentences that changed most",
        paragraph(
            f"{equal:,} of {len(comparison.pairs):,} translations are equal. The change is that of the sentence score, "
            "from the first run to the second; words that differ are marked."
        ),
    )
    for title, pairs in ((f"Better in {b}", better), (f"Worse in {b}", worse)):
        yield f"<h3>{escape(title)}</h3>"
        items = "".join(_pair_item(pair, comparison.names()) for pair in pairs)
        yield f"<ul class='outputs'>{items}</ul>" if pairs else paragraph("None.")


def _pair_item(pair: PairedOutput, names: tuple[str, str]) -> str:
    outputs = zip(names, mark_differences(*pair.outputs), pair.scores, strict=True)
    rows = "".join(
        f"<dt>{escape(name)}, {score:.1f}</dt><dd dir='auto' class='output'>{output or '<i>nothing</i>'}</dd>"
        for name, output, score in outputs
    )
    return (
        f"<li><b>{pair.gain:+.1f}</b><dl><dt>source</dt><dd dir='auto'>{escape(pair.source)}</dd>{rows}"
        f"<dt>reference</dt><dd dir='auto'>{escape(pair.reference)}</dd></dl></li>"
    )


def mark_differences(first: str, second: str) -> tuple[str, str]:
    """Write two texts as HTML in which the words that only one of them has are marked."""
    words = first.split(" "), second.split(" ")
    marked: tuple[list[str], list[str]] = ([], [])
    for kind, *spans in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        for side, (begin, end) in enumerate((spans[:2], spans[2:])):
            text = escape(" ".join(words[side][begin:end]))
            if begin < end:
                marked[side].append(text if kind == "equal" else f"<mark>{text}</mark>")
    return " ".join(marked[0]), " ".join(marked[1])
