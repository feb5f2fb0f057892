"""`allyouneed translate`: one output line for every input line."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..translator import Translator

# Every setting of the search that is not given is the bundle's own.
_LENGTH, _REPEATS, _CHANCE, _HOLD = "Length", "Repetition and variety", "Sampling", "What must hold"


def translate(
    bundle: Annotated[Path, typer.Argument(help="The folder of a trained model.", show_default=False)],
    file: Annotated[
        str, typer.Argument(help="Text to translate, a sentence a line, plain or compressed; - is standard input.")
    ] = "-",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write to this file; it grows as FILE.partial until it is whole.", show_default=False
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an output that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output file that exists.")] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="A JSON object a line: source, text, confidence, flags, and what else was asked for."
        ),
    ] = False,
    align: Annotated[
        str | None,
        typer.Option(
            "--alignments",
            help="Of words or tokens, after a tab: i-j is number i of the source, number j of the target.",
            show_default=False,
        ),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show each translation as it is being written: greedy, or by --sample.")
    ] = False,
    beam: Annotated[
        int | None, typer.Option(help="Hypotheses kept at a time; 1 is greedy.", show_default=False)
    ] = None,
    nbest: Annotated[
        int | None,
        typer.Option(help="So many translations of each line, best first, tabs between.", show_default=False),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Sentences translated together.", show_default=False)] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="Of the weights: float32, int8, or auto, which is int8 for a large model on an x86 CPU.")
    ] = "auto",
    compiled: Annotated[
        bool,
        typer.Option("--compiled", help="Quicker; at first Numba compiles for half a minute; extra \\[fast]."),
    ] = False,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Exponent of the length penalty: more favours longer.", show_default=False, rich_help_panel=_LENGTH
        ),
    ] = None,
    penalty: Annotated[
        str | None,
        typer.Option(
            help="gnmt, ((5 + length)/6)^alpha, or plain, length^alpha.", show_default=False, rich_help_panel=_LENGTH
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(help="Wait for beam · patience hypotheses to end.", show_default=False, rich_help_panel=_LENGTH),
    ] = None,
    min_length: Annotated[
        int | None,
        typer.Option(help="Tokens at least, the end sign included.", show_default=False, rich_help_panel=_LENGTH),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(help="Tokens at most, the end sign included.", show_default=False, rich_help_panel=_LENGTH),
    ] = None,
    min_ratio: Annotated[
        float | None,
        typer.Option(help="Tokens at least, times those of the source.", show_default=False, rich_help_panel=_LENGTH),
    ] = None,
    length_ratio: Annotated[
        float | None,
        typer.Option(help="Tokens at most, times those of the source,", show_default=False, rich_help_panel=_LENGTH),
    ] = None,
    extra_length: Annotated[
        int | None, typer.Option(help="and so many more.", show_default=False, rich_help_panel=_LENGTH)
    ] = None,
    no_repeat: Annotated[
        int | None,
        typer.Option(help="No run of so many tokens stands twice.", show_default=False, rich_help_panel=_REPEATS),
    ] = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(
            help="More than 1: words already said are less likely.", show_default=False, rich_help_panel=_REPEATS
        ),
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(help="Diverse beam: parts of the beam that differ.", show_default=False, rich_help_panel=_REPEATS),
    ] = None,
    diversity: Annotated[
        float | None,
        typer.Option(help="Diverse beam: how much they differ, in nats.", show_default=False, rich_help_panel=_REPEATS),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw by chance instead of searching.", rich_help_panel=_CHANCE)
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(help="Less than 1 is careful, more is bold.", show_default=False, rich_help_panel=_CHANCE),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="Only from so many likeliest words.", show_default=False, rich_help_panel=_CHANCE)
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            help="Only from words that together are so probable.", show_default=False, rich_help_panel=_CHANCE
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed, the same chance.", show_default=False, rich_help_panel=_CHANCE)
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(help="A file of lines: term, tab, translation.", show_default=False, rich_help_panel=_HOLD),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Copy untouched, commas between: urls, emails, tags, placeholders, numbers.",
            show_default=False,
            rich_help_panel=_HOLD,
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="How every translation begins.", show_default=False, rich_help_panel=_HOLD)
    ] = "",
    alternatives: Annotated[
        int,
        typer.Option(
            help="So many ways to go on after the prefix, tabs between.", show_default=False, rich_help_panel=_HOLD
        ),
    ] = 0,
    replace_unknown: Annotated[
        bool,
        typer.Option(
            "--replace-unknown",
            help="Write the source's word for a word that the vocabulary lacks.",
            rich_help_panel=_HOLD,
        ),
    ] = False,
    guard: Annotated[
        bool | None,
        typer.Option(
            "--guard/--no-guard",
            help="Copy what needs no translation, if the training data did; decode again what runs in circles.",
            show_default=False,
            rich_help_panel=_HOLD,
        ),
    ] = None,
) -> None:
    """Translate text: line n of the output belongs to line n of the input, and an empty line stays empty.

    Files of any size are read and written a stretch at a time. A run that was stopped goes on with --resume.

    [bold]Examples[/bold]

      echo 1845-01-05 | allyouneed translate runs/dates

      allyouneed translate runs/mine news.en --output news.de --beam 5

      allyouneed translate runs/mine news.en --output news.de --resume

      allyouneed translate runs/mine news.en --glossary terms.tsv --keep urls,placeholders

      allyouneed translate runs/mine news.en --nbest 4 --json

      allyouneed translate runs/mine news.en --alignments words
    """  # fmt: skip
    from ..errors import ConfigError, InputError
    from ..files import refuse_to_replace
    from ..text.glossary import Glossary
    from .flow import growing, lines_there, partial_of, stretches
    from .rows import as_json, as_text
    from .screen import console, progress, prompt

    if stream:
        _refuse_beside_stream(
            {"--output": output, "--json": json, "--alignments": align, "--alternatives": alternatives,
             "--prefix": prefix, "--nbest": nbest, "--beam": beam, "--groups": groups}
        )  # fmt: skip
    if output is None and resume:
        raise ConfigError("--resume goes on with a file; name it with --output")
    if output and output.exists() and resume:
        console.print(f"{output} is whole already; there is nothing to go on with")
        return
    if output and not overwrite:
        refuse_to_replace(output, what="the translation")
        if not resume and partial_of(output).exists():
            refuse_to_replace(partial_of(output), what="a new run (--resume would go on with it)")
    terms = Glossary.read(glossary) if glossary else None

    from ..device import keep_freed_memory
    from ..translator import WINDOW, Translator

    keep_freed_memory()
    translator = Translator.load(
        bundle, device=device, precision=precision, compiled=compiled, glossary=terms,
        beam=beam, nbest=nbest, batch=batch, alpha=alpha, penalty=penalty, patience=patience,
        min_length=min_length, max_length=max_length, min_ratio=min_ratio, length_ratio=length_ratio,
        extra_length=extra_length, no_repeat=no_repeat, repetition_penalty=repetition_penalty, groups=groups,
        diversity=diversity, sample=sample or None, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
        keep=tuple(kind.strip() for kind in keep.split(",")) if keep else None,
        replace_unknown=replace_unknown or None, guard=guard,
    )  # fmt: skip

    def work(lines: list[str], first: int) -> Iterator[str]:
        if stream:
            return _streamed(translator, lines, first)
        found = translator.translations(lines, prefix=prefix, branches=alternatives, align=align, first=first)
        return (f"{as_json(one) if json else as_text(one)}\n" for one in found)

    size = WINDOW * translator.decode.batch
    there = lines_there(partial_of(output), multiple=size) if output and resume else 0
    asking = prompt() if file == "-" and sys.stdin.isatty() else progress("translating", total=None)
    with growing(output, begun=there > 0) as out, asking as done:
        done(there)
        for first, lines in stretches(file, size=size, skip=there):
            try:
                for text in work(lines, first):
                    out.write(text.encode())
                    if stream:
                        out.flush()
            except InputError as error:
                name = "standard input" if file == "-" else file
                so_far = (
                    f" (the lines before are in {partial_of(output)}; mend it, then --resume)"
                    if output and first > 1
                    else ""
                )
                raise InputError(f"{name}, line {error.line}: {error}{so_far}") from error
            out.flush()
            done(len(lines))


def _streamed(translator: "Translator", lines: Iterable[str], first: int) -> Iterator[str]:
    """The pieces of all lines as they come, each line ended."""
    from ..errors import InputError

    for number, line in enumerate(lines, start=first):
        try:
            yield from (" ".join(piece.split("\n")) for piece in translator.stream(line))
        except InputError as error:
            raise InputError(str(error), line=number) from error
        yield "\n"


def _refuse_beside_stream(options: dict[str, object]) -> None:
    from ..errors import ConfigError

    if given := [name for name, value in options.items() if value]:
        raise ConfigError(f"--stream shows one greedy translation as it is written; leave out {', '.join(given)}")
