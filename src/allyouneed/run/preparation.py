"""The first stage of a run: read, clean and encode its pairs, and find their languages.

`allyouneed prepare` does only this. Pairs from memory are stored in the folder of the run, so that it can be resumed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..bundle_parts import read_config, read_parts
from ..config import CorpusConfig, DataConfig, Recipe
from ..config.data_config import LEARNED_VOCABULARY
from ..config.language_tags import guess_languages
from ..data.clean import ProgressCallback
from ..data.prepare import prepare
from ..data.prepared import PreparedData
from ..data.prepared_files import prepared_folder, stored_provenance
from ..data.provenance import compute_provenance
from ..data.readers import read_columns
from ..data.tabular import iterate_pairs
from ..errors import AllYouNeedError, BundleError, ConfigError, DataError
from ..machine.checksums import Checksums
from ..machine.files import locked, to_json, written_whole
from ..text.vocabulary import Vocabulary
from ..text.vocabulary_files import load_vocabulary
from .checkpoint import CHECKPOINT_FILE, read_state
from .run_folder import Stage, has_run, refuse_a_run, refuse_other_recipe

LONGEST_SAMPLE = 60  # characters of each side of the pairs that a message shows


def store_pairs(data: DataConfig, output: Path, parts: Mapping[str, Any], *, resume: bool) -> dict[str, str]:
    """Store the pairs of `parts` that are not None in `output`/pairs, and return their files as settings of [data].

    Refuses a part that `data` also names. If the run is resumed, refuses pairs that differ from those at its start.
    """
    parts = {part: pairs for part, pairs in parts.items() if pairs is not None}
    if not parts:
        return {}
    files = {part: str((output / "pairs" / f"{part}.jsonl").resolve()) for part in parts}
    for part, stored in files.items():
        if getattr(data, part) not in ((), "", stored):
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
    return files


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
    """Find the source and target language, "" if unknown. If the recipe does not name them, also make a message."""
    data = recipe.data
    if data.source_language:
        return (data.source_language, data.target_language), ""
    for corpus in data.corpora()[:1]:
        guess = guess_languages(corpus.train, corpus.columns or _heading(data, corpus))
        if guess:
            return guess, f"{guess[0]} → {guess[1]}, by the names of the data; --languages sets others"
    if recipe.train.init_from:
        try:
            languages = read_config(recipe.train.init_from).languages
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
    """The prepared pairs of a run, their folder, the bundle that the run starts from, and messages about them."""

    data: PreparedData
    folder: Path
    starts_from: str  # folder of the bundle; empty for new weights, or weights of a checkpoint
    notes: Sequence[str]

    def describe(self) -> list[tuple[str, str]]:
        """Describe the pairs and their vocabulary, as topics and lines."""
        return [
            *(("data", line) for line in self.data.describe()),
            *(("pair", f"{_shortened(source)} → {_shortened(target)}") for source, target in self.data.readable[:2]),
            *(("vocabulary", note) for note in self.notes),
            *(("tokens", line) for line in self.data.describe_sides()),
        ]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SAMPLE else f"{text[: LONGEST_SAMPLE - 1]}…"


def prepare_pairs(
    plan: Recipe,
    output: Path,
    *,
    stage: Stage,
    progress: ProgressCallback,
    ray: str = "",
    folder: Path | None = None,
) -> RunPairs:
    """Prepare the pairs of a run in `folder` or `data.cache_dir`, or open them if they are there already.

    `folder` is `output`/data by default; if it is given, its pairs must be there and unchanged.
    `ray` is the address of a Ray cluster that shares the work.
    """
    starts_from = plan.train.init_from if not stage.has_checkpoint else ""
    vocabulary, notes = _existing_vocabulary(plan, output, starts_from)
    is_prepared = folder is not None or stage is not Stage.NEW
    folder = folder or output / "data"
    data = prepare(
        plan.data,
        plan.clean,
        folder,
        max_length=plan.model.max_length,
        vocabulary=vocabulary,
        resume=is_prepared,
        progress=progress,
        ray=ray,
    )
    return RunPairs(data, prepared_folder(plan.data, folder, data.provenance), starts_from, notes)


def require_resumable(recipe: Recipe, output: Path) -> None:
    """Refuse to resume the run in a folder with another recipe, or with pairs other than those at its start."""
    refuse_other_recipe(recipe, output)
    if (output / CHECKPOINT_FILE).exists():
        read_state(output / CHECKPOINT_FILE).refuse_less(recipe.train)
    vocabulary, _ = _existing_vocabulary(recipe, output, starts_from="")
    provenance = compute_provenance(recipe.data, recipe.clean, recipe.model.max_length, vocabulary)
    if stored_provenance(prepared_folder(recipe.data, output / "data", provenance)) != provenance:
        raise DataError(f"{output} was started with other pairs")


def prepare_only(recipe: Recipe, output: Path, *, progress: ProgressCallback, ray: str = "") -> RunPairs:
    """Prepare the pairs for `run_training`, in the same folder, but make no model.

    Refuses a folder with a run.
    """
    in_output = nullcontext() if recipe.data.cache_dir else locked(output, what=str(output))
    with in_output:
        if not recipe.data.cache_dir:
            refuse_a_run(output)
        return prepare_pairs(recipe, output, stage=Stage.NEW, progress=progress, ray=ray)


def _existing_vocabulary(plan: Recipe, output: Path, starts_from: str) -> tuple[Vocabulary | None, Sequence[str]]:
    """Find a vocabulary that need not be learned, and say where it comes from.

    A run that is initialized from a model uses the model's vocabulary; a resumed run finds this vocabulary in its own
    folder. Any other run may use the vocabulary that `data.tokenizer` names.
    """
    if plan.train.init_from and plan.data.tokenizer:
        raise ConfigError(
            "a run that starts from the weights of a model has its vocabulary; leave out data.tokenizer or "
            "train.init_from"
        )
    if starts_from:
        _refuse_another_vocabulary(plan)
        return read_parts(Checksums(Path(starts_from))).vocabulary, ()
    if plan.train.init_from:
        return Vocabulary.load(output, joint=not (output / "tokenizer.target.json").exists()), ()
    return load_vocabulary(plan.data.tokenizer) if plan.data.tokenizer else (None, ())


def _refuse_another_vocabulary(plan: Recipe) -> None:
    """Refuse settings for learning a vocabulary, unless they equal those of the model that the run starts from."""
    made = Path(plan.train.init_from, "recipe.toml")
    initial = Recipe.read(made).data if made.is_file() else DataConfig()
    names = plan.data.changed(*LEARNED_VOCABULARY)
    others = [name for name in names if getattr(plan.data, name) != getattr(initial, name)]
    if others:
        raise ConfigError(
            f"a run that starts from the weights of {plan.train.init_from} also has its vocabulary; leave "
            f"out settings of another vocabulary, or set them to their defaults: {plan.data.describe_values(*others)}"
        )
