"""`allyouneed translate`: one output line for every input line."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def translate(
    bundle: Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)],
    file: Annotated[
        str, typer.Argument(help="Text to translate, a sentence a line, plain or .gz; - is standard input.")
    ] = "-",
    output: Annotated[
        Path | None, typer.Option(help="Write to this file, not to standard output.", show_default=False)
    ] = None,
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
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output file that exists.")] = False,
) -> None:
    """Translate text: line n of the output belongs to line n of the input, and an empty line stays empty.

    [bold]Examples[/bold]

      echo 1845-01-05 | allyouneed translate runs/dates

      allyouneed translate runs/mine news.en --output news.de --beam 5
    """
    from ..errors import InputError
    from ..files import refuse_to_replace, write_whole
    from ..text.corpus import decode_lines, read_lines
    from .screen import progress

    if output and not overwrite:
        refuse_to_replace(output, what="the translation")
    name = "standard input" if file == "-" else file
    lines = decode_lines(sys.stdin.buffer.read(), name=name) if file == "-" else read_lines(Path(file))

    from ..translator import Translator

    translator = Translator.load(bundle, device=device, precision=precision, beam=beam, batch=batch)
    try:
        with progress("translating", total=sum(map(bool, lines))) as done:
            translations = translator.translate(lines, done=done)
    except InputError as error:
        raise InputError(f"{name}, line {error.line}: {error}") from error
    # A line end inside a translation would shift all lines after it.
    text = "".join(" ".join(translation.splitlines()) + "\n" for translation in translations)
    if output:
        write_whole(output, text)
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
