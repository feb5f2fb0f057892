"""The plan of a run: its complete recipe and its prepared pairs.

A draft ends here. First `auto` chooses the settings for reading the pairs; once the pairs are prepared, it chooses the
rest. All later code only sees complete recipes.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from ..auto import Corpus, Draft, choose_from_pairs, preliminary_recipe
from ..auto.machine_speed import describe_speed
from ..config import Recipe
from ..data.clean import ProgressCallback
from .preparation import RunPairs, prepare_pairs
from .run_folder import Stage

LONGEST_SAMPLE = 60  # characters of each side of the pairs in a message


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A complete recipe, the pairs that it asks for, and messages about both, as topics and lines."""

    recipe: Recipe
    pairs: RunPairs
    messages: list[tuple[str, str]]


def plan_run(
    recipe: Recipe | Draft,
    output: Path,
    *,
    stage: Stage,
    device: torch.device,
    workers: int,
    progress: ProgressCallback,
) -> RunPlan:
    """Prepare the pairs of a run in `output`/data, and choose the settings that a draft leaves out.

    With a time budget on a CPU, the choice also depends on the speed of this machine with `workers` processes.
    """
    if isinstance(recipe, Draft):
        recipe = choose_from_pairs(recipe, output, device=device, workers=workers)
    pairs = prepare_pairs(preliminary_recipe(recipe), output, stage=stage, progress=progress)
    messages = _describe_pairs(pairs)
    if isinstance(recipe, Draft):
        recipe, choices = _complete(recipe, pairs, has_gpu=device.type != "cpu")
        messages += choices
    return RunPlan(recipe, pairs, messages)


def _complete(draft: Draft, pairs: RunPairs, *, has_gpu: bool) -> tuple[Recipe, list[tuple[str, str]]]:
    """Complete a draft with the help of its pairs. Returns the recipe and the reasons, as topics and lines."""
    train = pairs.data.train
    corpus = Corpus(
        pairs=len(train),
        tokens=train.epoch_tokens(),
        longest=train.longest(),
        has_valid=pairs.data.valid is not None,
        exact=draft.is_exact,
        gpu=has_gpu,
        minutes=draft.preliminary.train.minutes,
        speed=draft.speed,
    )
    complete, choices = draft.complete(corpus)
    messages = [("statistics", draft.statistics.describe())] if draft.statistics else []
    messages += [("speed", describe_speed(draft.speed))] if draft.speed else []
    warning = draft.warning(len(train))
    messages += [("warning", warning)] if warning else []
    messages += [("auto", str(choice)) for choice in choices]
    return complete, messages


def _describe_pairs(pairs: RunPairs) -> list[tuple[str, str]]:
    data = pairs.data
    messages = [("data", line) for line in data.describe()]
    messages += [("pair", f"{_shortened(pair.source)} → {_shortened(pair.target)}") for pair in data.readable[:2]]
    messages += [("vocabulary", note) for note in pairs.notes]
    messages += [("tokens", line) for line in data.describe_sides()]
    return messages


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SAMPLE else f"{text[: LONGEST_SAMPLE - 1]}…"
