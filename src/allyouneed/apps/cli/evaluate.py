"""`allyouneed evaluate`: score a model on a test set, or several models with the significance of the differences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ...errors import ConfigError, DataError, InputError
from ...machine.files import check_output_file, named_folders
from .command import (
    BundleFolders,
    DeviceOption,
    PrecisionOption,
    SearchSettings,
    with_options,
    with_search,
)
from .program import command_without
from .recipe_argument import parse_columns
from .scores import Scoring
from .screen import announce_pipes, console, progress

if TYPE_CHECKING:
    from ...data.pairs import Pair
    from ...evaluation import TranslatedSet


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateOptions:
    """The options of `allyouneed evaluate`, besides scoring and the settings of the search."""

    bundle: BundleFolders
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BUNDLE|PAIRS]", help="More models to compare; a file of pairs."),
    ] = None
    source: Annotated[Path | None, typer.Option(help="Text to translate, one sentence per line.")] = None
    target: Annotated[Path | None, typer.Option(help="Reference translations, one sentence per line.")] = None
    pairs: Annotated[
        Path | None, typer.Option(help="Texts and references in one file: source, tab, one or more references.")
    ] = None
    columns: Annotated[str | None, typer.Option(help='Columns of --pairs: "en,it", or by number "2,4".')] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the translations; a .jsonl file also gets scores.")
    ] = None
    device: DeviceOption = "auto"
    precision: PrecisionOption = "auto"


@with_search("beam", "batch_size")
@with_options(Scoring, "scoring")
@with_options(EvaluateOptions, "options")
def evaluate_command(options: EvaluateOptions, scoring: Scoring, decode: SearchSettings) -> None:
    """Translate a test set and score the result: BLEU, chrF2, chrF++, TER, character error rate and exact match.

    Every score has a 95 % interval. Two models are compared by a paired bootstrap test. With three or more, each is
    compared with the first, and runs that differ only in train.seed share one row: mean and standard deviation. Without
    a test set, evaluate uses the test pairs that the run held out, or that all runs held out.

    For example:
      allyouneed evaluate runs/mine
      allyouneed evaluate runs/old runs/new test.tsv --no-worse --at-least chrf=55
      allyouneed evaluate runs/mine --source test.en --target test.de --json
      allyouneed evaluate runs/mine --source a.en --target a.de decode.alpha=1.4
    """
    chosen = parse_columns(options.columns)
    models, pairs = _split_arguments(options.bundle, options.more or [], options.pairs)
    if chosen and not pairs:
        raise ConfigError(f"--columns names two columns of --pairs; got {options.columns!r} without --pairs")
    _refuse_number_of(models, scoring)
    source, target, output = options.source, options.target, options.output
    if output:
        inputs = filter(None, (source, target, pairs))
        check_output_file(output, what="the translations", overwrite=scoring.overwrite, inputs=inputs)
    scoring.check(others=[source, target, pairs, output])
    announce_pipes(source, target, pairs)
    test = read_test_set([named_folders(model) for model in models], source, target, pairs, chosen)
    metrics, limits = scoring.prepare(test.sources, test.references)
    if not (source or pairs):
        both = {1: "", 2: " both"}.get(len(models), " all")
        console.print(f"{len(test.sources):,} test pairs that {' and '.join(models)}{both} held out")
    translated = _translate_with_all(models, test, options, decode)
    scoring.show(translated, metrics, limits, output, runs=[named_folders(model)[0] for model in models])


def _translate_with_all(
    models: Sequence[str], test: "EvaluationSet", options: EvaluateOptions, decode: SearchSettings
) -> "list[TranslatedSet]":
    """Translate the test set with each model."""
    from ...evaluation import translate_set
    from ...machine.device import retain_freed_memory
    from ...translator import Translator

    retain_freed_memory()
    translated = []
    names = [model + " again" * models[:number].count(model) for number, model in enumerate(models)]
    for model, name in zip(models, names, strict=True):
        folders = named_folders(model)
        translator = Translator.load(*folders, device=options.device, precision=options.precision, **decode)
        try:
            with progress("translating", total=len(test.sources)) as done:
                rows = zip(test.sources, test.references, strict=True)
                translated.append(translate_set(translator, rows, name=name, on_progress=done))
        except InputError as error:
            raise InputError(f"{test.name}, line {error.line}: {error}") from error
    return translated


def _refuse_number_of(models: Sequence[str], scoring: Scoring) -> None:
    """Refuse a number of models that an option does not take; propose the first with the last that differs from it."""
    if scoring.no_worse and len(models) == 1:
        raise ConfigError(f"--no-worse compares two models; got 1: {command_without(['--no-worse'])}")
    if len(models) > 2 and (scoring.no_worse or scoring.wrong):
        rule = "--no-worse compares two" if scoring.no_worse else "--wrong lists the translations of one or two"
        last = next((model for model in reversed(models) if model != models[0]), models[0])
        surplus = Counter(models) - Counter((models[0], last))
        raise ConfigError(f"{rule} models; got {len(models)}: {command_without(surplus.elements())}")


def _split_arguments(bundle: str, more: Sequence[str], pairs: Path | None) -> tuple[list[str], Path | None]:
    """Split the arguments into models and the file of pairs, if there is one."""
    models, files = [bundle], [pairs] if pairs else []
    for word in more:
        if all(folder.is_dir() for folder in named_folders(word)):
            models.append(word)
        else:
            files.append(Path(word))
    if len(files) > 1:
        raise ConfigError(
            f"{files[0]} and {files[1]} cannot both be the file of pairs; a model is the folder of a bundle"
        )
    return models, files[0] if files else None


class EvaluationSet(NamedTuple):
    """Texts with their reference translations. `name` is for messages."""

    name: str
    sources: list[str]
    references: list[list[str]]


def read_test_set(
    models: Sequence[Sequence[Path]],
    source: Path | None,
    target: Path | None,
    pairs: Path | None,
    columns: Sequence[str],
) -> EvaluationSet:
    """Read the test set that the options name; without options, the test pairs of the models' runs.

    Each model is one bundle, or several that form an ensemble. Only pairs that all runs held out are used, because a
    run may have trained on the test pairs of another.
    """
    from ...data.readers import READERS, pair_lines, read_pairs
    from ...evaluation.held_out import NAME_A_TEST_SET, common_held_out_pairs, held_out_pairs
    from ...text.lines import file_ending

    if not (source or target or pairs):
        for first, *others in models:
            for other in others:
                if held_out_pairs(other) != held_out_pairs(first):
                    raise ConfigError(f"{first} and {other} held out different test pairs; {NAME_A_TEST_SET}")
        runs = [first for first, *_ in models]
        return as_test_set(str(runs[0]), common_held_out_pairs(runs) if len(runs) > 1 else held_out_pairs(runs[0]))
    if source and target and not pairs:
        return as_test_set(str(source), pair_lines(source, target))
    if not pairs or source or target:
        raise ConfigError(f"{NAME_A_TEST_SET}, or leave them out to score the test set of the run")
    kind = file_ending(pairs)
    if columns or (kind in READERS and kind not in (".tsv", ".txt")):
        return as_test_set(str(pairs), read_pairs(str(pairs), columns=columns))
    return _with_all_references(pairs)


def _with_all_references(file: Path) -> EvaluationSet:
    """Read sources with one or more references, separated by tabs. A heading names the columns."""
    from ...data.headings import heading_order
    from ...data.tabular import tsv_rows
    from ...text.lines import require_memory_for

    sources, references = list[str](), list[list[str]]()
    order = (0, 1)
    rows = require_memory_for(tsv_rows(file), lambda row: sum(map(len, row.cells)), str(file))
    for number, row in enumerate(rows):
        if isinstance(row.cells, str):
            raise DataError(f"{file}, line {row.line} {row.cells}")
        cells = [cell.strip() for cell in row.cells]
        if len(cells) < 2:
            raise DataError(f"{file}, line {row.line} has no tab: expected a source, a tab and its translation")
        if not number and (heading := heading_order(cells[:2], f"{file}, line {row.line}")):
            order = heading
        else:
            source, target = order
            sources.append(cells[source])
            references.append([cells[target], *filter(None, cells[2:])])
    if not sources:
        raise DataError(f"{file} is empty; expected a source, a tab and its translation on every line")
    return EvaluationSet(str(file), sources, references)


def as_test_set(name: str, pairs: "Sequence[Pair]") -> EvaluationSet:
    """Make a test set of pairs, with one reference each."""
    return EvaluationSet(name, [pair.source for pair in pairs], [[pair.target] for pair in pairs])
