"""`allyouneed adapt`: continue training a model with corrections of its translations."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...config.settings import apply_overrides
from .command import BundleFolder, with_options
from .recipe_argument import parse_columns
from .screen import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...data.pairs import Pair
    from ..transfer.adaptation import Adaptation

TITLES = {"bleu": "BLEU", "chrf": "chrF", "exact": "exact match"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AdaptOptions:
    """The options of `allyouneed adapt`."""

    bundle: BundleFolder
    corrections: Annotated[
        Path,
        typer.Argument(
            help="A file of pairs, of any kind that train reads, or the file of allyouneed serve --suggestions."
        ),
    ]
    overrides: Annotated[list[str] | None, typer.Argument(metavar="SECTION.KEY=VALUE", help="Settings to change.")] = (
        None
    )
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the new model. Default: BUNDLE-adapted.")
    ] = None
    mix: Annotated[
        float,
        typer.Option(
            min=0, max=100, help="Known pairs to mix in for each correction; with more, the model forgets less."
        ),
    ] = 3.0
    minutes: Annotated[float, typer.Option(min=0, help="Training time in minutes; 0: no limit.")] = 10.0
    sources: Annotated[
        Path | None,
        typer.Option(
            help="Texts of the kind that the model translates, one per line; its translations of them are mixed in, "
            "instead of the pairs that it was trained on."
        ),
    ] = None
    columns: Annotated[
        str | None, typer.Option(help='Source and target column of the corrections: "en,it" or, counted from 1, "2,4".')
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted adaptation; start it if there is none.")
    ] = False


@with_options(AdaptOptions, "options")
def adapt(options: AdaptOptions) -> None:
    """Teach a model corrections or a new kind of text, without forgetting what it knows.

    Every epoch mixes the corrections with pairs that the model knows, from its run or its own translations. Of the
    models that still translate known validation pairs about as well as before, adapt keeps the best on held-out
    corrections. At the end you see scores on both test sets, before and after.

    For example:
      allyouneed adapt runs/en-it corrections.tsv --output runs/better
      allyouneed adapt runs/en-it suggestions.jsonl
      allyouneed adapt en-it corrections.tsv --sources news.en -o runs/better
    """
    from ...machine.device import configure_process
    from ...machine.files import followed
    from .program import shell_command

    bundle = options.bundle
    path = followed(options.output or followed(bundle).with_name(f"{bundle.resolve().name}-adapted"))
    settings = apply_overrides({}, [f"train.minutes={options.minutes}", *(options.overrides or [])])
    configure_process()
    _print_scores(_adapt(options, path, settings))
    console.print(f"\nThe model is in {path}; {path}/report.html describes the run.")
    console.print(f"Next:\n  {shell_command('translate', path)} FILE")


def _adapt(options: AdaptOptions, path: Path, settings: dict[str, Any]) -> "Adaptation":
    """Read the corrections and the texts to mix in, and train."""
    from ..transfer.adaptation import adapt_bundle
    from .progress_bar import ProgressBar

    pairs = _read_corrections(options.corrections, options.bundle, options.columns)
    texts = _read_texts(options.sources) if options.sources else []
    with ProgressBar() as screen:
        return adapt_bundle(
            options.bundle,
            pairs,
            path,
            mix=options.mix,
            sources=texts,
            settings=settings,
            callback=screen,
            resume=options.resume,
        )


def _read_texts(file: Path) -> list[str]:
    from ...errors import DataError
    from ...text.lines import read_lines

    texts = [line for line in read_lines(file) if line.strip()]
    if not texts:
        raise DataError(f"{file} has no text; name a file with a text on each line, or leave out --sources")
    return texts


def _read_corrections(file: Path, bundle: Path, columns: str | None) -> "Sequence[Pair]":
    from ...bundle_parts import read_config
    from ...data.pairs import Pair
    from ...data.readers import read_pairs
    from ...errors import DataError
    from ..serve.suggestions import is_suggestion_store, latest_suggestions

    chosen = parse_columns(columns)
    if not columns and is_suggestion_store(file):
        kept = [Pair(one.source, one.target) for one in latest_suggestions(file, *read_config(bundle).languages)]
        if not (changed := _changed(kept, bundle)):
            raise DataError(
                f"{file} has nothing to learn: the model already writes every translation in it ({len(kept):,})"
            )
        if len(changed) < len(kept):
            console.print(
                f"{len(kept) - len(changed):,} of {len(kept):,} are left out: the model already translates them so"
            )
        return changed
    return read_pairs(str(file), columns=chosen)


def _changed(pairs: "Sequence[Pair]", folder: Path) -> "Sequence[Pair]":
    """Return the corrections that the model translates differently, both greedily and with its own settings."""
    from ...bundle import Bundle
    from ...errors import InputError
    from ...evaluation.model_scores import greedy_translator
    from ...translator import Translator

    translators = greedy_translator(Bundle.load(folder)), Translator.load(folder)
    try:
        outputs = [translator.translate([pair.source for pair in pairs]) for translator in translators]
    except InputError:  # this is reported later
        return pairs
    return [pair for pair, *said in zip(pairs, *outputs, strict=True) if pair.target.strip() not in said]


def _print_scores(result: "Adaptation") -> None:
    names = {
        "corrections": "corrections that it was not trained on",
        "known": "what it knew" if not result.are_outputs else "what it knew (against its own former translations)",
    }
    if result.before:
        print(f"\n{'':<12}{'before':>8}{'after':>8}{'change':>8}   test pairs")
    for name, scores in result.before.items():
        for metric, before in scores.items():
            after = result.after[name][metric]
            print(f"{TITLES[metric]:<12}{before:>8.2f}{after:>8.2f}{after - before:>+8.2f}   {names[name]}")
    if result.learned:
        before, after, count = result.learned
        print(
            f"\n{after:,} of {count:,} corrections are now translated correctly, {before:,} before. It was trained on "
            "all of them: they are too few to test with others."
        )
