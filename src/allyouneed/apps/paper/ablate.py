"""Table 3 on other data: scale every row to a smaller base, and train all rows for the same number of updates."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from ...bundle import Bundle
from ...config import ModelConfig, Recipe, TrainConfig
from ...data.pairs import Pair
from ...errors import ConfigError
from ...evaluation import evaluate
from ...metrics import QUICK_METRICS
from ...recipes import recipe_path
from ...run import Evaluation, Hooks, Validation, run_training
from ...run.callback import SilentCallback
from ...train import Update, paper_learning_rate
from ..explain.draw import BLUE, ORANGE, new_figure
from .table import ROWS, Row

TRIAL_UPDATES = 10  # updates of each row, to measure its speed
SCORED_PAIRS = 200  # validation pairs that are translated


@dataclass(frozen=True, slots=True)
class AblationResult:
    """A trained row: perplexity per token and BLEU on validation pairs, and the training time in seconds."""

    row: Row
    recipe: Recipe
    parameters: int
    perplexity: float
    bleu: float
    seconds: float


class _Recorder(SilentCallback):
    """Records the times at which training began and each update ended, and the last validation."""

    validation: Validation

    def on_train_begin(self, step: int, steps: int) -> None:
        self.times = [time.monotonic()]

    def on_update(self, update: Update, steps: int) -> None:
        self.times.append(time.monotonic())

    def on_validation(self, validation: Validation) -> None:
        self.validation = validation


def ablate(
    recipe: Recipe, output: Path, *, minutes: float, rows: Sequence[Row] = tuple(ROWS), trial: int = TRIAL_UPDATES
) -> Iterator[AblationResult]:
    """Train every row for the same number of updates, with the model of `recipe` as the base.

    A short trial of each row on this machine decides the number of updates, so that training all rows takes `minutes`.
    The number never exceeds the recipe's. Each run is kept in a folder of `output`. Refuses, once the data is read, a
    recipe without validation pairs.
    """
    recipe = replace(recipe, data=replace(recipe.data, cache_dir=recipe.data.cache_dir or str(output / "data")))
    seconds_per_round = sum(_seconds_per_update(recipe, row, output / "trial" / row.name, trial) for row in rows)
    steps = max(2, min(recipe.train.steps, int(minutes * 60 / seconds_per_round)))
    for row in rows:
        row_recipe, recorder = scale_recipe(recipe, row, steps=steps), _Recorder()
        bundle = run_training(row_recipe, output / row.name, Hooks(callback=recorder, evaluate=_evaluate))
        validation = recorder.validation
        if validation.valid_loss is None:
            raise ConfigError("an ablation needs validation pairs: set data.valid, or set data.held_out above 0")
        seconds = recorder.times[-1] - recorder.times[0]
        perplexity = math.exp(validation.valid_loss)
        yield AblationResult(
            row, row_recipe, bundle.model.parameter_count(), perplexity, validation.scores["bleu"], seconds
        )


def _evaluate(bundle: Bundle, pairs: Sequence[Pair]) -> Evaluation:
    return evaluate(bundle, pairs, metrics=QUICK_METRICS, intervals=False)


def build_small_base(pairs: str) -> Recipe:
    """Build a recipe for a file of pairs: the paper's base with an eighth of its width and half of its layers."""
    return Recipe.from_tables(
        {
            "data": {"train": pairs, "vocab_size": 2_000},
            "model": {"d_model": 64, "d_ff": 256, "encoder_layers": 3, "decoder_layers": 3, "max_length": 128},
            "train": {
                "steps": 20_000,
                "batch_tokens": 512,
                "warmup": 400,
                "learning_rate": 0.004375,
                "cooldown": 20_000,
            },
            "decode": {"beam": 1},
        }
    )


def scale_recipe(recipe: Recipe, row: Row, *, steps: int) -> Recipe:
    """Change `recipe` as `row` changes the paper's base: scale sizes by the same factor, and copy other settings."""
    base, row_model = ModelConfig(), row.model
    model = recipe.model

    def by_factor(name: str) -> int:
        return max(1, round(float(getattr(model, name) * getattr(row_model, name) / getattr(base, name))))

    heads = by_factor("heads")
    d_model = heads * max(1, round(by_factor("d_model") / heads))
    changed = replace(
        model,
        d_model=d_model + heads * (d_model % 2),  # sines and cosines need an even width
        d_ff=by_factor("d_ff"),
        heads=heads,
        d_k=None if row_model.d_k is None else max(1, round(model.d_model / model.heads * row_model.d_k / 64)),
        encoder_layers=by_factor("encoder_layers"),
        decoder_layers=by_factor("decoder_layers"),
        dropout=row_model.dropout if row_model.dropout != base.dropout else model.dropout,
        positions=row_model.positions if row_model.positions != base.positions else model.positions,
    )
    smoothing = Recipe.read(recipe_path(row.name)).train.label_smoothing
    warmup = max(1, min(recipe.train.warmup, steps // 5))
    peak = recipe.train.learning_rate or paper_learning_rate(
        recipe.train.warmup, d_model=model.d_model, warmup=recipe.train.warmup
    )
    if recipe.train.schedule == "paper":
        peak *= math.sqrt(model.d_model / changed.d_model)  # equation 3
    train = replace(
        recipe.train,
        steps=steps,
        warmup=warmup,
        learning_rate=peak,
        cooldown=min(recipe.train.cooldown, steps // 2),
        validate_every=steps,
        average_checkpoints=1,
        ema_decay=0.0,
        patience=0,
        validate_samples=SCORED_PAIRS,
        label_smoothing=smoothing if smoothing != TrainConfig().label_smoothing else recipe.train.label_smoothing,
    )
    return replace(recipe, model=changed, train=train)


def ablation_figure(results: Sequence[AblationResult]) -> Figure:
    """Draw how much better or worse each row is than the first, in our runs and in the paper's table."""
    figure = new_figure(9.5, 0.3 * len(results) + 1.5)
    first, rows = results[0], range(len(results))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, printed, measured, title in (
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
        axes.hlines(rows, printed, measured, color="#888888", linewidth=0.8)
        axes.plot(printed, rows, "s", color=ORANGE, markersize=6, label="Table 3")
        axes.plot(measured, rows, "o", color=BLUE, markersize=7, label="ours, scaled down")
        axes.set_title(title, fontsize=10)
    left.set_yticks(rows, [one.row.name for one in results])
    left.invert_yaxis()
    figure.suptitle(f"each row against {first.row.name}", fontsize=11)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _seconds_per_update(recipe: Recipe, row: Row, output: Path, trial: int) -> float:
    recorder = _Recorder()
    run_training(scale_recipe(recipe, row, steps=trial + 1), output, Hooks(callback=recorder))
    return (recorder.times[-1] - recorder.times[1]) / trial  # without the first update, which includes one-time work
