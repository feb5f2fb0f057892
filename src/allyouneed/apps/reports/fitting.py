"""`fit`: train a model, and score it at every validation."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ...auto import Draft, complete, preliminary_recipe, with_data
from ...bundle import Bundle, ModelBuilder
from ...config import Recipe
from ...config.language_tags import parse_pair
from ...errors import ConfigError
from ...evaluation.model_scores import UserMetric, evaluate_greedily, with_stopping_metric
from ...run import (
    Evaluator,
    Hooks,
    SilentCallback,
    Stopwatch,
    TrainingCallback,
    is_follower,
    join_run,
    replaced,
    run_training,
    source_paths,
    store_pairs,
    was_restarted,
)
from ...run.hooks import OptimizerFactory
from ...run.log import FrameMaker
from ...younger.muon import build_optimizer
from .report import try_to_write_report


def fit(
    recipe: Recipe | Draft | str | Path | Sequence[str | Path] | Mapping[str, Any],
    output: str | Path,
    *,
    train: Any = None,
    valid: Any = None,
    test: Any = None,
    minutes: float | None = None,
    languages: str = "",
    init_from: str | Path = "",
    callback: TrainingCallback | None = None,
    evaluate: Evaluator | None = evaluate_greedily,
    metrics: Mapping[str, UserMetric] | None = None,
    film: FrameMaker | None = None,
    optimizer: OptimizerFactory = build_optimizer,
    build_model: ModelBuilder | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stopwatch: Stopwatch | None = None,
) -> Bundle:
    """Train the model of `recipe`, leave it in the folder `output`, and return its bundle.

    `recipe` is a `Recipe`; a `Draft` or its tables, which may leave out settings; a file of pairs, or a list of two
    aligned files; or the TOML file of a recipe. Settings that are left out are chosen from the pairs, as the command
    does. Pairs come from the files that `recipe` names, or from memory, and are then stored in `output`/pairs: `train`,
    `valid` and `test` may be iterables of (source, target) pairs or of rows, polars or pandas frames, or Hugging Face
    data sets, whose two columns `data.columns` names. `minutes`, `languages` (such as "en-it") and `init_from` set
    train.minutes, data.source_language and data.target_language, and train.init_from.

    `callback` is informed of the progress; a context manager such as `ProgressBar()` is entered. `evaluate` scores
    validation pairs at every validation, by default with BLEU, chrF and exact match of greedy translations; with None,
    only the loss is measured. `metrics` maps names, which `train.early_stopping_metric` may use, to functions of
    translations and references that return a score; higher is better. `film` is called with the bundle at growing
    intervals; its results are the frames of film.jsonl. `optimizer` makes the optimizer, whose learning rate follows
    the recipe's schedule; `build_model` makes the model.

    With `train.minutes` the whole run ends within this time, measured by `stopwatch`; a resumed run gets the rest. With
    `resume`, the run continues from the checkpoint in `output`, exactly as if it had never stopped; it starts if there
    is none, and a finished run stays unchanged. With `overwrite`, a run in `output` is replaced when the new one has
    finished. Without either, an existing run is refused. Refuses to resume with other settings or pairs, and a folder
    in which another process trains. SIGINT and SIGTERM save the run and raise `Interrupted`.
    """
    recipe = _with_settings(_as_tables(recipe), _named_settings(minutes, languages, init_from))
    plan = preliminary_recipe(recipe)
    hooks = Hooks(
        callback=callback or SilentCallback(),
        evaluate=with_stopping_metric(evaluate, metrics or {}, plan.train.early_stopping_metric),
        film=film,
        optimizer=optimizer,
        build_model=build_model,
        report=try_to_write_report,
        stopwatch=stopwatch or Stopwatch(),
    )
    if is_follower():
        return join_run(hooks)
    run = Path(output)
    place = replaced(run, sources=source_paths(plan), resume=resume) if overwrite else nullcontext(run)
    with place as folder, callback if isinstance(callback, AbstractContextManager) else nullcontext():
        files = store_pairs(plan.data, folder, {"train": train, "valid": valid, "test": test}, resume=resume)
        return train_draft(with_data(recipe, files), folder, hooks, resume=resume)


def train_draft(recipe: Recipe | Draft, output: Path, hooks: Hooks, *, resume: bool) -> Bundle:
    """Train a recipe, or a draft that is completed first."""
    resume = resume or was_restarted()
    recipe, notes = complete(recipe, output, hooks, resume=resume)
    return run_training(recipe, output, hooks, resume=resume, notes=notes)


def _named_settings(minutes: float | None, languages: str, init_from: str | Path) -> dict[str, Any]:
    settings: dict[str, Any] = {} if minutes is None else {"train.minutes": minutes}
    if languages:
        settings["data.source_language"], settings["data.target_language"] = parse_pair(languages)
    return settings | ({"train.init_from": str(init_from)} if init_from else {})


def _with_settings(what: Recipe | Draft | Mapping[str, Any], settings: Mapping[str, Any]) -> Recipe | Draft:
    """Add settings, by section.key, to the recipe, or to a draft made of the tables."""
    if isinstance(what, Draft) and "train.init_from" not in settings:
        return what.with_settings(settings)
    if isinstance(what, Recipe) and not settings:
        return what
    tables = what if isinstance(what, Mapping) else what.tables() if isinstance(what, Recipe) else what.tables
    tables = {name: dict(table) if isinstance(table, Mapping) else table for name, table in tables.items()}
    for name, value in settings.items():
        section, _, key = name.partition(".")
        tables.setdefault(section, {})[key] = value
    return Recipe.from_tables(tables) if isinstance(what, Recipe) else Draft.from_tables(tables)


def _as_tables(what: object) -> Recipe | Draft | Mapping[str, Any]:
    match what:
        case Recipe() | Draft() | Mapping():
            return what
        case str() | Path() if str(what).endswith(".toml"):
            return Recipe.read(what)
        case str() | Path():
            return {"data": {"train": str(what)}}
        case [str() | Path(), *_] if all(isinstance(file, str | Path) for file in what):
            return {"data": {"train": list(map(str, what))}}
    raise ConfigError(
        "fit takes a recipe, a file of pairs, two aligned files, or the tables of a recipe; "
        f"got {what!r:.60}; pairs from memory are another argument: fit({{}}, output, train=pairs)"
    )
