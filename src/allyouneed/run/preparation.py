"""The first stage of a run: read, clean and encode its pairs, and find their languages.

`allyouneed prepare` does only this. Pairs from memory are stored in the folder of the run, so that it can be resumed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from ..auto import Draft, choose_from_pairs, preliminary_recipe, with_data
from ..bundle import read_languages, read_vocabulary
from ..config import CorpusConfig, DataConfig, Recipe
from ..config.data_config import LEARNED_VOCABULARY
from ..config.language_tags import guess_languages
from ..data.clean import ProgressCallback
from ..data.prepare import prepare
from ..data.prepared import PreparedData, compute_provenance, prepared_folder, stored_provenance
from ..data.readers import read_columns
from ..data.tabular import iterate_pairs
from ..errors import AllYouNeedError, BundleError, ConfigError, DataError
from ..machine.files import locked, to_json, written_whole
from ..text.vocabulary import Vocabulary, load_vocabulary
from .run_folder import Stage, has_run, refuse_a_run


def with_pairs(recipe: Recipe | Draft, output: Path, parts: Mapping[str, Any], *, resume: bool) -> Recipe | Draft:
    """Store the pairs of `parts` in `output`/pairs, and name them in the recipe's [data].

    Refuses a part that the recipe also names. For a resumed run, refuses pairs that differ from those it started with.
    """
    data = preliminary_recipe(recipe).data
    files: dict[str, Any] = {part: str((output / "pairs" / f"{part}.jsonl").resolve()) for part in parts}
    for part, file in files.items():
        if getattr(data, part) not in ((), "", file):
            raise ConfigError(f"both {part} and data.{part}={getattr(data, part)!r} name pairs; leave one of them out")
    with locked(output, what=str(output)):
        resumes = resume and has_run(output)
        if not resumes:
            refuse_a_run(output)
        for part, pairs in parts.items():
            keys = data.columns or ("source", "target")
            lines = (
                to_json(dict(zip(keys, pair, strict=True))).encode() + b"\n"
                for pair in iterate_pairs(pairs, columns=data.columns, name=part)
            )
            path = Path(files[part])
            if resumes:
                _require_same(path, lines, part)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as file:
                file.writelines(lines)
    return with_data(recipe, files)


def _require_same(path: Path, lines: Iterator[bytes], part: str) -> None:
    if not path.is_file():
        raise DataError(f"{part} has pairs, but this run did not start with pairs from memory: {path} does not exist")
    with path.open("rb") as file:
        for number, (before, now) in enumerate(zip_longest(file, lines), start=1):
            if before != now:
                raise DataError(
                    f"{part} differs at pair {number} from the pairs that this run started with; resume with the same "
                    "pairs, in the same order, or start another run"
                )


UNKNOWN = ("", "")


def find_languages(recipe: Recipe) -> tuple[tuple[str, str], str]:
    """Find the source and target language, "" if unknown, and make a message if they are not from the recipe."""
    data = recipe.data
    if data.source_language:
        return (data.source_language, data.target_language), ""
    for corpus in data.corpora()[:1]:
        if guess := guess_languages(corpus.train, corpus.columns or _heading(data, corpus)):
            return guess, f"{guess[0]} → {guess[1]}, by the names of the data; --languages sets others"
    if recipe.train.init_from:
        try:
            languages = read_languages(recipe.train.init_from)
        except BundleError:  # a resumed run works without the model that it started from
            return UNKNOWN, ""
        message = f"{languages[0]} → {languages[1]}, as {Path(recipe.train.init_from)}"
        return languages, message if any(languages) else ""
    return UNKNOWN, ""


def _heading(data: DataConfig, corpus: CorpusConfig) -> tuple[str, ...]:
    if not corpus.train:
        return ()
    try:
        known = read_columns(corpus.train, folder=data.data_dir, sheet=corpus.sheet)
    except AllYouNeedError:  # a resumed run works without the original files
        return ()
    return known.names if known else ()


@dataclass(frozen=True, slots=True)
class RunPairs:
    """The prepared pairs of a run, their folder, the bundle that the run starts from, and messages."""

    data: PreparedData
    folder: Path
    starts_from: str  # folder of the bundle; empty for new weights, or weights of a checkpoint
    notes: Sequence[str]


def prepare_pairs(plan: Recipe, output: Path, *, stage: Stage, progress: ProgressCallback, ray: str = "") -> RunPairs:
    """Prepare the pairs of a run in `output`/data or `data.cache_dir`, or open them if they are there already.

    `ray` is the address of a Ray cluster that shares the work.
    """
    starts_from = plan.train.init_from if not stage.has_checkpoint else ""
    vocabulary, notes = _existing_vocabulary(plan, output, starts_from)
    data = prepare(
        plan.data,
        plan.clean,
        output / "data",
        max_length=plan.model.max_length,
        vocabulary=vocabulary,
        resume=stage is not Stage.NEW,
        progress=progress,
        ray=ray,
    )
    return RunPairs(data, prepared_folder(plan.data, output / "data", data.provenance), starts_from, notes)


def has_same_pairs(plan: Recipe, output: Path) -> bool:
    """Return True if the pairs of a run are prepared from the data, and with the settings, that this recipe names."""
    vocabulary, _ = _existing_vocabulary(plan, output, starts_from="")
    provenance = compute_provenance(plan.data, plan.clean, plan.model.max_length, vocabulary)
    return stored_provenance(prepared_folder(plan.data, output / "data", provenance)) == provenance


def prepare_only(recipe: Recipe | Draft, output: Path, *, progress: ProgressCallback, ray: str = "") -> RunPairs:
    """Prepare the pairs with which `run_training` would train, in the same folder, without a model.

    Refuses a folder with a run.
    """
    if isinstance(recipe, Draft):
        recipe = choose_from_pairs(recipe, output, device=torch.device("cpu"))
    plan = preliminary_recipe(recipe)
    in_output = nullcontext() if plan.data.cache_dir else locked(output, what=str(output))
    with in_output:
        if not plan.data.cache_dir:
            refuse_a_run(output)
        pairs = prepare_pairs(plan, output, stage=Stage.NEW, progress=progress, ray=ray)
    choices = map(str, recipe.chosen) if isinstance(recipe, Draft) else ()
    return replace(pairs, notes=(*choices, *pairs.notes))


def _existing_vocabulary(plan: Recipe, output: Path, starts_from: str) -> tuple[Vocabulary | None, Sequence[str]]:
    """Find a vocabulary that need not be learned, and say where it comes from.

    A run that is initialized from a model uses the model's vocabulary, which a resumed run has in its own folder.
    Another run may use the vocabulary that `data.tokenizer` names.
    """
    if plan.train.init_from and plan.data.tokenizer:
        raise ConfigError(
            "a run that starts from the weights of a model has its vocabulary; leave out data.tokenizer or "
            "train.init_from"
        )
    if starts_from:
        _refuse_another_vocabulary(plan)
        return read_vocabulary(starts_from), ()
    if plan.train.init_from:
        return Vocabulary.load(output, joint=not (output / "tokenizer.target.json").exists()), ()
    return load_vocabulary(plan.data.tokenizer) if plan.data.tokenizer else (None, ())


def _refuse_another_vocabulary(plan: Recipe) -> None:
    """Refuse settings for learning a vocabulary, unless they equal those of the model that the run starts from."""
    made = Path(plan.train.init_from, "recipe.toml")
    initial = Recipe.read(made).data if made.is_file() else DataConfig()
    names = plan.data.changed(*LEARNED_VOCABULARY)
    if others := [name for name in names if getattr(plan.data, name) != getattr(initial, name)]:
        raise ConfigError(
            f"a run that starts from the weights of a model has its vocabulary, that of {plan.train.init_from}; leave "
            f"out what describes another, or set it to its default: {plan.data.describe_values(*others)}"
        )
