"""`allyouneed evaluate`: how well a model translates a test set."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    bundle: Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)],
    source: Annotated[
        Path | None, typer.Option(help="The text to translate, a sentence a line.", show_default=False)
    ] = None,
    target: Annotated[
        Path | None, typer.Option(help="How it should be translated, line by line.", show_default=False)
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Instead of both: lines of a source and one or more equally right translations, tab-separated.",
            show_default=False,
        ),
    ] = None,
    tokenize: Annotated[
        str,
        typer.Option(help='How BLEU finds words, as sacrebleu names it; "none" for text that is tokenised already.'),
    ] = "13a",
    beam: Annotated[
        int | None,
        typer.Option(help="Hypotheses kept at a time; 1 is greedy. The bundle's own if not given.", show_default=False),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Sentences translated together. The bundle's own if not given.", show_default=False),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Exponent of the length penalty: more favours longer. The bundle's own if not given.",
            show_default=False,
        ),
    ] = None,
    penalty: Annotated[
        str | None,
        typer.Option(
            help="gnmt, ((5 + length)/6)^alpha, or plain, length^alpha. The bundle's own if not given.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="Of the weights: float32, int8, or auto, which is int8 for a large model on an x86 CPU.")
    ] = "auto",
    compiled: Annotated[
        bool,
        typer.Option("--compiled", help="Quicker; at first Numba compiles for half a minute; extra \\[fast]."),
    ] = False,
) -> None:
    """Translate a test set and score the result: BLEU and chrF with sacrebleu's signature, and exact match.

    [bold]Examples[/bold]

      allyouneed evaluate runs/mine --source test.en --target test.de

      allyouneed evaluate runs/mine --pairs test.multiref.tsv.gz

      allyouneed evaluate runs/mine --source valid.en --target valid.de --alpha 1.4
    """
    from ..errors import InputError
    from ..score import bleu, chrf, exact_match, refuse_unknown_tokenizer
    from .screen import announce_pipes, progress

    refuse_unknown_tokenizer(tokenize)
    announce_pipes(source, target, pairs)
    sources, references = _read(source, target, pairs)

    from ..device import keep_freed_memory
    from ..translator import Translator

    keep_freed_memory()
    translator = Translator.load(
        bundle,
        device=device,
        precision=precision,
        compiled=compiled,
        beam=beam,
        batch=batch,
        alpha=alpha,
        penalty=penalty,
    )
    try:
        with progress("translating", total=len(sources)) as done:
            translations = translator.translate(sources, done=done)
    except InputError as error:
        raise InputError(f"{source or pairs}, line {error.line}: {error}") from error
    # An accent that is a character of its own counts as another word: references get the form of what is compared.
    form = translator.bundle.normalization
    references = [[form(reference) for reference in of_one] for of_one in references]
    for score in (
        bleu(translations, references, tokenize=tokenize),
        chrf(translations, references),
        exact_match(translations, references),
    ):
        print(f"{score.name:<12}{score.value:>7.2f}   {score.signature}")


def _read(source: Path | None, target: Path | None, pairs: Path | None) -> tuple[list[str], list[list[str]]]:
    from ..errors import ConfigError, DataError
    from ..text.corpus import pair_lines, read_lines

    if source and target and not pairs:
        aligned = pair_lines(source, target)
        return [pair.source for pair in aligned], [[pair.target] for pair in aligned]
    if not pairs or source or target:
        raise ConfigError("name the test set by --source and --target, or by --pairs")
    rows = [line.split("\t") for line in read_lines(pairs)]
    for number, row in enumerate(rows, start=1):
        if len(row) < 2:
            raise DataError(f"{pairs}, line {number} has no tab: expected a source, a tab and its translation")
    return [row[0] for row in rows], [row[1:] for row in rows]
