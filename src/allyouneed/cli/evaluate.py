"""`allyouneed evaluate`: scores of a model on a test set."""

from pathlib import Path
from typing import Annotated

import typer

from .model_options import BundleFolders, CompiledOption, DeviceOption, PrecisionOption
from .search_options import SearchSettings, with_search_options


@with_search_options
def evaluate_command(
    bundle: BundleFolders,
    source: Annotated[
        Path | None, typer.Option(help="The text to translate, a sentence a line.", show_default=False)
    ] = None,
    target: Annotated[
        Path | None, typer.Option(help="The reference translations, a sentence a line.", show_default=False)
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Instead of both: lines of a source and one or more reference translations, tab-separated; "
            "or a file of another kind that train reads.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help='Source and target column of --pairs: "en,it" or, counted from 1, "2,4".', show_default=False
        ),
    ] = None,
    tokenize: Annotated[
        str,
        typer.Option(help='Tokenizer of sacrebleu for BLEU; "none" for text that is tokenised already.'),
    ] = "13a",
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    compiled: CompiledOption = None,
    *,
    decode: SearchSettings,
) -> None:
    """Translate a test set and score the result: BLEU and chrF with sacrebleu's signature, and exact match.

    Without a test set, the held-out test pairs of the model's run are used. Search settings that are left out have
    the values stored in the bundle.

    [bold]Examples[/bold]

      allyouneed evaluate runs/mine

      allyouneed evaluate runs/mine --source test.en --target test.de

      allyouneed evaluate runs/mine --pairs test.multiref.tsv.gz

      allyouneed evaluate runs/mine --source a.en --target a.de --alpha 1.4

      allyouneed evaluate runs/seed1,runs/seed2
    """
    from ..errors import ConfigError, InputError
    from ..files import named_folders
    from ..metrics import refuse_unknown_tokenizer
    from .screen import announce_pipes, console, progress
    from .testset import read_test_set

    refuse_unknown_tokenizer(tokenize)
    chosen = tuple(name.strip() for name in columns.split(",")) if columns else ()
    if columns and (len(chosen) != 2 or not pairs):
        raise ConfigError(f"--columns names two columns of --pairs, source and target; got {columns!r}")
    announce_pipes(source, target, pairs)
    folders = named_folders(bundle)
    name, sources, references = read_test_set(folders, source, target, pairs, chosen)
    if not (source or pairs):
        console.print(f"{len(sources):,} test pairs that {bundle} held out")

    from ..device import retain_freed_memory
    from ..evaluation import evaluate
    from ..translator import Translator

    retain_freed_memory()
    translator = Translator.load(
        *folders, device=device, precision=precision, compiled="auto" if compiled is None else compiled, **decode
    )
    try:
        with progress("translating", total=len(sources)) as done:
            result = evaluate(translator, zip(sources, references, strict=True), tokenize=tokenize, on_progress=done)
    except InputError as error:
        raise InputError(f"{name}, line {error.line}: {error}") from error
    for metric, title in (("bleu", "BLEU"), ("chrf", "chrF2"), ("exact", "exact match")):
        print(f"{title:<12}{result.scores[metric]:>7.2f}   {result.signatures[metric]}")
