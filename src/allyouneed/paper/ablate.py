"""Table 3 anew, on other data: every row scaled to a smaller base and trained for the same number of updates."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from ..bundle import Bundle
from ..config import ModelConfig, Recipe, TrainConfig
from ..corpus.readers import Pair
from ..errors import ConfigError
from ..explain.draw import BLUE, ORANGE, new_figure
from ..metrics import bleu
from ..recipes import recipe_path
from ..run import Evaluation, Validation, fit
from ..run.callback import SilentCallback
from ..train import Update, paper_learning_rate
from ..translator import Translator
from .table import ROWS, Row

TRIAL = 10  # updates of each row that show how fast the machine is
SCORED = 200  # validation pairs that are translated


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a scaled row: perplexity a token and BLEU on validation pairs, and the seconds it trained."""

    row: Row
    recipe: Recipe
    parameters: int
    perplexity: float
    bleu: float
    seconds: float


class _Recorder(SilentCallback):
    """A `Watch` that keeps when the first update began and each was done, and how the last pause went."""

    validation: Validation

    def on_train_begin(self, step: int, steps: int) -> None:
        self.times = [time.monotonic()]

    def on_update(self, update: Update) -> None:
        self.times.append(time.monotonic())

    def on_validation(self, pause: Validation) -> None:
        self.validation = pause


def ablate(
    recipe: Recipe, output: Path, *, minutes: float, rows: Sequence[Row] = tuple(ROWS), trial: int = TRIAL
) -> Iterator[Result]:
    """Train each row, as it would be if `recipe`'s model were the base, for the same number of updates.

    How many follows from a short trial of each on this machine, so that their training takes `minutes`
    altogether; none gets more than the recipe has. Each run stays in a folder of `output`. Refuses, once
    the data is read, a recipe that holds nothing out for validation.
    """
    recipe = replace(recipe, data=replace(recipe.data, cache_dir=recipe.data.cache_dir or str(output / "data")))
    one_of_each = sum(_seconds_per_update(recipe, row, output / "trial" / row.name, trial) for row in rows)
    steps = max(2, min(recipe.train.steps, int(minutes * 60 / one_of_each)))
    for row in rows:
        ours, watched = scaled(recipe, row, steps=steps), _Recorder()
        bundle = fit(ours, output / row.name, callback=watched, evaluate=_translate)
        pause = watched.validation
        if pause.valid_loss is None:
            raise ConfigError(
                "an ablation compares on validation pairs: set data.valid, or data.held_out to more than 0"
            )
        seconds = watched.times[-1] - watched.times[0]
        perplexity = math.exp(pause.valid_loss)
        yield Result(row, ours, bundle.model.parameter_count(), perplexity, pause.scores["bleu"], seconds)


def small_base(pairs: str) -> Recipe:
    """For a file of pairs: the paper's base with an eighth of its width and half of its layers."""
    return Recipe.from_tables(
        {
            "data": {"train": pairs, "vocab_size": 2_000},
            "model": {"d_model": 64, "d_ff": 256, "encoder_layers": 3, "decoder_layers": 3, "max_length": 128},
            "train": {"steps": 20_000, "batch_tokens": 512, "warmup": 400, "learning_rate": 0.7, "cooldown": 20_000},
            "decode": {"beam": 1},
        }
    )


def scaled(recipe: Recipe, row: Row, *, steps: int) -> Recipe:
    """`recipe` changed as `row` changes the paper's base: sizes by the same factor, all else to the same value."""
    base, theirs = ModelConfig(), row.model
    ours = recipe.model

    def by_factor(name: str) -> int:
        return max(1, round(float(getattr(ours, name) * getattr(theirs, name) / getattr(base, name))))

    heads = by_factor("heads")
    d_model = heads * max(1, round(by_factor("d_model") / heads))
    changed = replace(
        ours,
        d_model=d_model + heads * (d_model % 2),  # sines need an even width
        d_ff=by_factor("d_ff"),
        heads=heads,
        d_k=None if theirs.d_k is None else max(1, round(ours.d_model / ours.heads * theirs.d_k / 64)),
        encoder_layers=by_factor("encoder_layers"),
        decoder_layers=by_factor("decoder_layers"),
        dropout=theirs.dropout if theirs.dropout != base.dropout else ours.dropout,
        positions=theirs.positions if theirs.positions != base.positions else ours.positions,
    )
    smoothing = Recipe.read(recipe_path(row.name)).train.label_smoothing
    warmup = max(1, min(recipe.train.warmup, steps // 5))
    train = replace(
        recipe.train,
        steps=steps,
        warmup=warmup,
        learning_rate=recipe.train.learning_rate
        or paper_learning_rate(recipe.train.warmup, d_model=recipe.model.d_model, warmup=recipe.train.warmup),
        cooldown=min(recipe.train.cooldown, steps // 2),
        validate_every=steps,
        average_checkpoints=1,
        ema_decay=0.0,
        patience=0,
        validate_samples=SCORED,
        label_smoothing=smoothing if smoothing != TrainConfig().label_smoothing else recipe.train.label_smoothing,
    )
    return replace(recipe, model=changed, train=train)


def picture(results: Sequence[Result]) -> Figure:
    """Every row against the first: how much worse or better it is, in ours and in the paper's table."""
    figure = new_figure(9.5, 0.3 * len(results) + 1.5)
    first, places = results[0], range(len(results))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, theirs, ours, title in (
        (
            left,
            [100 * (one.row.perplexity / first.row.perplexity - 1) for one in results],
            [100 * (one.perplexity / first.perplexity - 1) for one in results],
            "perplexity, % more (right is worse)",
        ),
        (
            right,
            [one.row.bleu - first.row.bleu for one in results],
            [one.bleu - first.bleu for one in results],
            "BLEU, points more (right is better)",
        ),
    ):
        axes.axvline(0, color="#888888", linewidth=0.8)
        axes.hlines(places, theirs, ours, color="#888888", linewidth=0.8)
        axes.plot(theirs, places, "s", color=ORANGE, markersize=6, label="Table 3")
        axes.plot(ours, places, "o", color=BLUE, markersize=7, label="ours, scaled down")
        axes.set_title(title, fontsize=10)
    left.set_yticks(places, [one.row.name for one in results])
    left.invert_yaxis()
    figure.suptitle(f"each row against {first.row.name}", fontsize=11)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _seconds_per_update(recipe: Recipe, row: Row, output: Path, trial: int) -> float:
    watched = _Recorder()
    fit(scaled(recipe, row, steps=trial + 1), output, callback=watched)
    return (watched.times[-1] - watched.times[1]) / trial  # the first update does what is done once


def _translate(bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
    translations = Translator(bundle).translate([pair.source for pair in pairs])
    return Evaluation({"bleu": bleu(translations, [pair.target for pair in pairs]).value})
