"""`allyouneed evaluate`: how well a model translates a test set."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    bundle: Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)],
    source: Annotated[Path, typer.Option(help="The text to translate, a sentence a line.", show_default=False)],
    target: Annotated[Path, typer.Option(help="How it should be translated, line by line.", show_default=False)],
    beam: Annotated[
        int | None,
        typer.Option(help="Hypotheses kept at a time; 1 is greedy. The bundle's own if not given.", show_default=False),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Sentences translated together. The bundle's own if not given.", show_default=False),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="Of the weights: float32, int8, or auto, which is int8 for a large model on an x86 CPU.")
    ] = "auto",
) -> None:
    """Translate a test set and score the result: BLEU and chrF with sacrebleu's signature, and exact match.

    [bold]Example[/bold]

      allyouneed evaluate runs/mine --source test.en --target test.de
    """
    from ..errors import InputError
    from ..score import bleu, chrf, exact_match
    from ..text.corpus import pair_lines
    from .screen import progress

    pairs = pair_lines(source, target)

    from ..translator import Translator

    translator = Translator.load(bundle, device=device, precision=precision, beam=beam, batch=batch)
    try:
        with progress("translating", total=len(pairs)) as done:
            translations = translator.translate([pair.source for pair in pairs], done=done)
    except InputError as error:
        raise InputError(f"{source}, line {error.line}: {error}") from error
    references = [pair.target for pair in pairs]
    for score in (
        bleu(translations, references),
        chrf(translations, references),
        exact_match(translations, references),
    ):
        print(f"{score.name:<12}{score.value:>7.2f}   {score.signature}")
