"""The first part of a run: its pairs, read, cleaned and encoded; `allyouneed prepare` does no more."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ..auto import Draft, choose_from_pairs, preliminary_recipe
from ..bundle import Bundle
from ..config import DataConfig, Recipe
from ..config.data_config import LEARNED_VOCABULARY
from ..data.clean import ProgressCallback
from ..data.prepare import prepare
from ..data.prepared import PreparedData, prepared_folder
from ..errors import ConfigError
from ..files import locked
from ..text.vocabulary import Vocabulary, load_vocabulary
from .resume import refuse_a_run


@dataclass(frozen=True, slots=True)
class RunPairs:
    """The prepared pairs of a run, the folder that holds them, the model that the run starts from, and messages."""

    data: PreparedData
    folder: Path
    initial: Bundle | None
    notes: Sequence[str]


def prepare_pairs(
    plan: Recipe, output: Path, *, starts: bool, resume: bool, progress: ProgressCallback, ray: str = ""
) -> RunPairs:
    """Prepare the pairs of a run in `output`/data or `data.cache_dir`, or open them if they are there already.

    `starts`: the run has no checkpoint yet. `ray` is the address of a cluster whose processes help.
    """
    initial = Bundle.load(Path(plan.train.init_from)) if plan.train.init_from and starts else None
    vocabulary, notes = _existing_vocabulary(plan, output, initial)
    data = prepare(
        plan.data,
        plan.clean,
        output / "data",
        max_length=plan.model.max_length,
        vocabulary=vocabulary,
        resume=resume,
        progress=progress,
        ray=ray,
    )
    return RunPairs(data, prepared_folder(plan.data, output / "data", data.provenance), initial, notes)


def prepare_only(recipe: Recipe | Draft, output: Path, *, progress: ProgressCallback, ray: str = "") -> RunPairs:
    """The pairs with which `run_training` would train, in the same folder, without a model.

    Refuses a folder with a run.
    """
    if isinstance(recipe, Draft):
        recipe = choose_from_pairs(recipe, output, device=torch.device("cpu"))
    plan = preliminary_recipe(recipe)
    in_output = nullcontext() if plan.data.cache_dir else locked(output, what=str(output))
    with in_output:
        if not plan.data.cache_dir:
            refuse_a_run(output)
        pairs = prepare_pairs(plan, output, starts=True, resume=False, progress=progress, ray=ray)
    choices = map(str, recipe.chosen) if isinstance(recipe, Draft) else ()
    return replace(pairs, notes=(*choices, *pairs.notes))


def _existing_vocabulary(plan: Recipe, output: Path, initial: Bundle | None) -> tuple[Vocabulary | None, Sequence[str]]:
    """The vocabulary that is not to be learned, and what to say about it.

    It is that of the model that a run is initialized from, or that of `data.tokenizer`.
    """
    if plan.train.init_from and plan.data.tokenizer:
        raise ConfigError(
            "a run that starts from the weights of a model has its vocabulary; leave out data.tokenizer or "
            "train.init_from"
        )
    if initial:
        _refuse_another_vocabulary(plan)
        return initial.vocabulary, ()
    if plan.train.init_from:
        return Vocabulary.load(output, joint=not (output / "tokenizer.target.json").exists()), ()
    return load_vocabulary(plan.data.tokenizer) if plan.data.tokenizer else (None, ())


def _refuse_another_vocabulary(plan: Recipe) -> None:
    """Refuse settings of a vocabulary to learn, unless the model that a run is initialized from was made with them."""
    made = Path(plan.train.init_from, "recipe.toml")
    initial = Recipe.read(made).data if made.is_file() else DataConfig()
    names = plan.data.changed(*LEARNED_VOCABULARY)
    if others := [name for name in names if getattr(plan.data, name) != getattr(initial, name)]:
        raise ConfigError(
            f"a run that starts from the weights of a model has its vocabulary, that of {plan.train.init_from}; leave "
            f"out what describes another, or set it to its default: {plan.data.describe_values(*others)}"
        )
