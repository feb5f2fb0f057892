"""Table 3 anew: its rows, scaled down, trained on somebody's own pairs within a time budget."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..config import ModelConfig, Recipe, TrainConfig
from ..errors import ConfigError
from ..recipes import recipe_path
from ..score import bleu
from ..text.corpus import read_pairs
from ..train import fit
from ..translator import Translator
from .table import ROWS, Row, flops_per_pair_of_tokens

TRIAL = 10  # updates that show how fast the machine is
SCORED = 200  # validation pairs


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a scaled row: perplexity a token and BLEU on validation pairs, and the seconds it took."""

    row: Row
    model: ModelConfig
    parameters: int
    perplexity: float
    bleu: float
    seconds: float


def ablate(
    recipe: Recipe, output: Path, *, minutes: float, rows: Sequence[Row] = tuple(ROWS), trial: int = TRIAL
) -> Iterator[Result]:
    """Train each row, as it would be if `recipe`'s model were the base, for the same number of updates.

    How many follows from a short trial of the base on this machine; none gets more than the recipe
    has. Each run stays in a folder of `output`. Refuses a recipe without validation pairs.
    """
    if not recipe.data.valid:
        raise ConfigError("an ablation compares on validation pairs: the recipe must have data.valid")
    steps = _steps_within(minutes * 60, recipe, output / "trial", rows, trial)
    for row in rows:
        begin = time.monotonic()
        bundle = fit(scaled(recipe, row, steps=steps), output / row.name)
        seconds = time.monotonic() - begin
        pairs = read_pairs(
            recipe.data.valid,
            folder=recipe.data.folder,
            columns=recipe.data.columns,
            limit=SCORED,
            seed=recipe.train.seed,
        )
        translator = Translator(bundle)
        scored = list(translator.score(pairs))
        words = sum(len(one.log_probabilities) for one in scored)
        loss = -sum(sum(one.log_probabilities) for one in scored) / words
        translations = translator.translate([pair.source for pair in pairs])
        config = bundle.model.config
        yield Result(
            row,
            config,
            bundle.model.parameter_count(),
            math.exp(loss),
            bleu(translations, [pair.target for pair in pairs]).value,
            seconds,
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
    train = replace(
        recipe.train,
        steps=steps,
        warmup=max(1, min(recipe.train.warmup, steps // 5)),
        cooldown=min(recipe.train.cooldown, steps // 2),
        pause=steps,
        average=1,
        label_smoothing=smoothing if smoothing != TrainConfig().label_smoothing else recipe.train.label_smoothing,
    )
    return replace(recipe, model=changed, train=train)


def _steps_within(seconds: float, recipe: Recipe, output: Path, rows: Sequence[Row], trial: int) -> int:
    def cost(row: Row) -> int:
        config = scaled(recipe, row, steps=trial).model
        return flops_per_pair_of_tokens(config, vocabulary=recipe.data.vocab_size)

    begin = time.monotonic()
    fit(scaled(recipe, ROWS[0], steps=trial), output)
    one = (time.monotonic() - begin) / trial
    updates = int(seconds / (one * sum(cost(row) for row in rows) / cost(ROWS[0])))
    return max(2, min(recipe.train.steps, updates))
