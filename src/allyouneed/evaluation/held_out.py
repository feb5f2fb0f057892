"""The test pairs of a run, and the pairs it was trained on."""

from collections.abc import Sequence
from pathlib import Path

from ..config import Recipe
from ..data.pairs import Pair
from ..data.prepared_files import prepared_folder, read_held_out
from ..data.provenance import compute_provenance
from ..data.readers import is_task, read_pairs
from ..errors import ConfigError
from ..machine.files import parse_json, read_whole
from ..text.vocabulary import Vocabulary

GENERATED_PAIRS = 2_000  # test pairs of a task
NAME_A_TEST_SET = "name the test set by --source and --target, or by --pairs"


def held_out_pairs(run: Path) -> list[Pair]:
    """Return the test pairs of a run, or 2,000 generated pairs for a task. Refuses a run without test pairs."""
    if pairs := find_held_out_pairs(run):
        return pairs
    cache = Recipe.read(run / "recipe.toml").data.cache_dir
    elsewhere = f" in its folder (data.cache_dir is {cache!r})" if cache else ""
    raise ConfigError(f"{run} has no test set{elsewhere}; {NAME_A_TEST_SET}")


def find_held_out_pairs(run: Path) -> list[Pair]:
    """Find the test pairs of a run; [] if it held out none. Refuses a folder without a run."""
    if not run.is_dir():
        raise ConfigError(f"{run} is not a folder; expected a bundle, as `allyouneed train` leaves it")
    if not (run / "recipe.toml").is_file():
        raise ConfigError(f"{run} has no recipe.toml and so no test set; {NAME_A_TEST_SET}")
    recipe = Recipe.read(run / "recipe.toml")
    pairs = read_held_out(find_prepared(run, recipe), "test")
    for corpus in recipe.data.corpora():
        if is_task(corpus.test):
            data = recipe.data
            pairs += read_pairs(corpus.test, limit=data.max_valid_samples or GENERATED_PAIRS, seed=data.seed)
    return pairs


def common_held_out_pairs(runs: Sequence[Path]) -> list[Pair]:
    """Return the test pairs that all runs held out, because a run may have trained on the test pairs of another.

    Refuses runs that have no such pairs in common.
    """
    first, *others = (held_out_pairs(run) for run in runs)
    common = set(first).intersection(*others)
    if not common:
        raise ConfigError(f"{' and '.join(map(str, runs))} have no test pairs in common; {NAME_A_TEST_SET}")
    return [pair for pair in first if pair in common]


def find_prepared(run: Path, recipe: Recipe) -> Path:
    """Find the folder of a run's prepared pairs, which may be elsewhere because of `data.cache_dir`."""
    if not recipe.data.cache_dir:
        return run / "data"
    report = run / "data-report.json"
    if report.is_file() and (known := parse_json(read_whole(report)).get("fingerprint")):
        return Path(recipe.data.cache_dir, known)
    is_given = bool(recipe.train.init_from or recipe.data.tokenizer)
    vocabulary = Vocabulary.load(run, joint=not (run / "tokenizer.target.json").exists()) if is_given else None
    return prepared_folder(
        recipe.data,
        run / "data",
        compute_provenance(recipe.data, recipe.clean, recipe.model.max_length, vocabulary),
    )
