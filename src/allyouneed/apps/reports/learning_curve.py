"""A learning curve: train on an eighth, a quarter, half and all pairs, and predict the score for twice as many."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...config import Recipe
from ...data.pairs import Pair
from ...errors import DataError
from ...evaluation import evaluate
from ...machine.files import to_json, write_whole
from ...metrics import QUICK_METRICS
from ...run import SilentCallback, TrainingCallback
from ...translator import Translator
from ..explain import save
from ..explain.draw import BLUE, ORANGE, new_figure
from .fitting import fit

SHARES = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))
FEWEST = 10  # pairs in the smallest training set
HELD_OUT, MOST_HELD_OUT = 10, 1_000  # every tenth source is held out, at most this many
TITLES = {"exact": "exact match", "chrf": "chrF"}


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The scores, in percent, of a model trained on some of the pairs, and the metric that suits the task."""

    pairs: int
    scores: Mapping[str, float]
    metric: str


def learning_curve(
    pairs: Sequence[Pair],
    output: str | Path,
    *,
    minutes: float | None = None,
    valid: Sequence[Pair] = (),
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    seed: int = 1,
    callback: Callable[[], TrainingCallback] = SilentCallback,
) -> Iterator[CurvePoint]:
    """Train on each share of the pairs for a quarter of the minutes, and yield the model's scores on other pairs.

    Without `minutes`, each training takes as long as its settings say. The larger shares contain the smaller ones. All
    models are scored on the pairs `valid` or, without these, on a tenth of the sources, which is held out. Settings
    that are not in the tables `settings` are chosen separately for each share. Each run is in a folder of `output`
    named by its number of pairs; `resume` continues an interrupted curve. Refuses too few pairs.
    """
    train, valid = (list(pairs), list(valid)) if valid else _hold_out(pairs, seed)
    folder = Path(output)
    random.Random(seed).shuffle(train)
    counts = [int(share * len(train)) for share in SHARES]
    if counts[0] < FEWEST:
        least = FEWEST * SHARES[0].denominator
        raise DataError(
            f"a learning curve needs at least {least} pairs besides those that are held out; got {len(train)}"
        )
    for count in counts:
        fit(
            dict(settings or {}),
            folder / f"{count}",
            train=train[:count],
            valid=valid,
            minutes=minutes / len(counts) if minutes else None,
            callback=callback(),
            resume=resume,
        )
        chosen = Recipe.read(folder / f"{count}" / "recipe.toml").train.early_stopping_metric
        found = evaluate(Translator.load(folder / f"{count}"), valid, metrics=QUICK_METRICS, intervals=False)
        yield CurvePoint(count, found.scores, "exact" if chosen == "accuracy" else "chrf")


def _hold_out(pairs: Sequence[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
    """Divide pairs into training pairs and held-out pairs, which are the pairs of every tenth source."""
    sources = list(dict.fromkeys(pair.source for pair in pairs))
    chosen = set(random.Random(seed).sample(sources, min(MOST_HELD_OUT, len(sources) // HELD_OUT)))
    return [pair for pair in pairs if pair.source not in chosen], [pair for pair in pairs if pair.source in chosen]


def expect_of_twice(scores: Sequence[float]) -> float:
    """Estimate the score, in percent, for twice as many pairs, from `scores` for repeatedly doubled numbers of pairs.

    The errors are expected to fall by the mean factor of the last two doublings. If noise makes them grow, they stay
    equal.
    """
    errors = [100 - score for score in scores[-3:]]
    if len(errors) < 2 or not errors[0] or not errors[-1]:
        return scores[-1]
    factor = math.pow(errors[-1] / errors[0], 1 / (len(errors) - 1))
    return 100 - errors[-1] * min(1.0, factor)


def describe_curve(points: Sequence[CurvePoint]) -> str:
    """Say in a sentence what twice the pairs would give, and how well this method predicts the last score."""
    metric = points[-1].metric
    scores = [point.scores[metric] for point in points]
    if expect_of_twice(scores) <= scores[-1] < 100:
        return "the score does not rise with the pairs: they are enough, or too many for so few --minutes"
    text = f"twice the pairs: about {expect_of_twice(scores):.0f} % {TITLES[metric]} instead of {scores[-1]:.0f}"
    return f"{text} (so foretold from half of them, all would have {expect_of_twice(scores[:-1]):.0f})"


def save_curve(points: Sequence[CurvePoint], output: str | Path) -> None:
    """Write curve.json, the numbers, and curve.svg, the picture, to the folder of a learning curve."""
    metric = points[-1].metric
    counts = [point.pairs for point in points]
    scores = [point.scores[metric] for point in points]
    expected = expect_of_twice(scores)
    lines = [{"pairs": point.pairs, "scores": dict(point.scores)} for point in points]
    found = {"metric": metric, "points": lines, "expected_of_twice": round(expected, 2)}
    write_whole(Path(output) / "curve.json", to_json(found) + "\n")

    figure = new_figure(6, 4)
    axes = figure.subplots()
    axes.plot(
        [counts[-1], 2 * counts[-1]],
        [scores[-1], expected],
        "o",
        linestyle="dashed",
        color=ORANGE,
        label="expected of twice",
    )
    axes.plot(counts, scores, "-o", color=BLUE, label="measured")
    axes.set_xscale("log", base=2)
    axes.set_xticks([*counts, 2 * counts[-1]], [f"{count:,}" for count in [*counts, 2 * counts[-1]]])
    axes.set_xlabel("pairs")
    axes.set_ylabel(f"{TITLES[metric]}, %")
    axes.legend(frameon=False)
    save(figure, Path(output) / "curve.svg")
