"""`allyouneed translate`: one output line for every input line."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from ..errors import InputError
    from ..translator import Translator
    from .flow import Stretch

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
    skip_refused: Annotated[
        bool,
        typer.Option(
            "--skip-refused",
            help="Leave an empty line where one cannot be translated, say why, and exit with code 3 at the end.",
        ),
    ] = False,
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
    batch_size: Annotated[int | None, typer.Option(help="Sentences translated together.", show_default=False)] = None,
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
    length_penalty: Annotated[
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
    no_repeat_ngram_size: Annotated[
        int | None,
        typer.Option(help="No run of so many tokens stands twice.", show_default=False, rich_help_panel=_REPEATS),
    ] = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(
            help="More than 1: words already said are less likely.", show_default=False, rich_help_panel=_REPEATS
        ),
    ] = None,
    beam_groups: Annotated[
        int | None,
        typer.Option(help="Diverse beam: parts of the beam that differ.", show_default=False, rich_help_panel=_REPEATS),
    ] = None,
    diversity_penalty: Annotated[
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
    copy_spans: Annotated[
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
            help="So many ways to go on after the prefix, tabs between.",
            min=0,
            show_default=False,
            rich_help_panel=_HOLD,
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
    copy_untranslatable: Annotated[
        bool | None,
        typer.Option(
            "--copy-untranslatable/--no-copy-untranslatable",
            help="Copy a text with nothing to translate, if the training pairs did.",
            show_default=False,
            rich_help_panel=_HOLD,
        ),
    ] = None,
    retry_repetition: Annotated[
        bool | None,
        typer.Option(
            "--retry-repetition/--no-retry-repetition",
            help="Decode a repetitive output again, with repeated n-grams banned.",
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

      allyouneed translate runs/mine news.en --glossary terms.tsv --copy-spans urls,placeholders

      allyouneed translate runs/mine news.en --nbest 4 --json

      allyouneed translate runs/mine news.en --alignments words
    """  # fmt: skip
    from dataclasses import asdict

    from ..errors import ConfigError, InputError
    from ..text.glossary import Glossary
    from .flow import Stretch, refuse_document, stretches
    from .resumable import check_output, files_digest, line_writer, partial_of
    from .rows import as_json, as_text
    from .screen import announce_pipes, console, progress, prompt

    if stream:
        _refuse_beside_stream(
            {"--output": output, "--json": json, "--alignments": align, "--alternatives": alternatives,
             "--prefix": prefix, "--nbest": nbest, "--beam": beam, "--beam-groups": beam_groups}
        )  # fmt: skip
    if resume and (output is None or overwrite):
        raise ConfigError("--resume goes on with the file that --output names, and without --overwrite")
    refuse_document(file)
    inputs = [0 if file == "-" else Path(file), *filter(None, [glossary])]
    check_output(
        output, [*inputs, *bundle.glob("*.json"), *bundle.glob("*.safetensors")], resume=resume, overwrite=overwrite
    )
    if output and resume and output.is_file():
        console.print(f"{output} is whole already; there is nothing to go on with")
        return
    announce_pipes(glossary, output, *([] if file == "-" else [Path(file)]))
    terms = Glossary.read(glossary) if glossary else None

    from ..bundle import model_files
    from ..device import retain_freed_memory
    from ..translator import WINDOW, Translator

    retain_freed_memory()
    translator = Translator.load(
        bundle, device=device, precision=precision, compiled=compiled, glossary=terms,
        beam=beam, nbest=nbest, batch_size=batch_size, alpha=alpha, length_penalty=length_penalty, patience=patience,
        min_length=min_length, max_length=max_length, min_ratio=min_ratio, length_ratio=length_ratio,
        extra_length=extra_length, no_repeat_ngram_size=no_repeat_ngram_size, repetition_penalty=repetition_penalty,
        beam_groups=beam_groups, diversity_penalty=diversity_penalty, sample=sample or None,
        temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
        copy_spans=tuple(kind.strip() for kind in copy_spans.split(",")) if copy_spans else None,
        replace_unknown=replace_unknown or None, copy_untranslatable=copy_untranslatable,
        retry_repetition=retry_repetition,
    )  # fmt: skip

    name = "standard input" if file == "-" else file

    def work(stretch: Stretch) -> Iterator[str]:
        if stream:
            yield from _streamed(translator, stretch, skip_refused=skip_refused)
            return

        def refuse(error: InputError) -> None:
            stretch.refused[cast(int, error.line)] = str(error)

        found = translator.translations(
            stretch.lines, prefix=prefix, alternatives=alternatives, align=align, first_line=stretch.first,
            on_refused=refuse if skip_refused else None,
        )  # fmt: skip
        for number, one in enumerate(found, start=stretch.first):
            yield f"{as_json(one, error=stretch.refused.get(number)) if json else as_text(one)}\n"

    made_of = {
        "model": files_digest(*model_files(bundle)), "precision": translator.precision, "compiled": compiled,
        "glossary": glossary and files_digest(glossary), "prefix": prefix, "alternatives": alternatives,
        "alignments": align, "format": "JSON" if json else "text", "skip_refused": skip_refused,
        **asdict(translator.decode),
    } if output else {}  # fmt: skip
    size = WINDOW * translator.decode.batch_size
    asking = prompt() if file == "-" and sys.stdin.isatty() else progress("translating", total=None)
    with line_writer(output, made_of=made_of, size=size, resume=resume) as out, asking as done:
        for stretch in stretches(file, size=size, live=output is None, skip_refused=skip_refused):
            if not out.has(stretch):
                try:
                    for text in work(stretch):
                        out.write(text)
                        if stream:
                            out.file.flush()
                except InputError as error:
                    raise _told(error, name, partial_of(output) if output and out.lines else None) from error
                for number, reason in sorted(stretch.refused.items()):
                    console.print(f"{name}, line {number}, left out: {reason}")
                out.done(stretch)
            done(len(stretch.lines))
    if out.refused:
        lines = "1 line was" if out.refused == 1 else f"{out.refused:,} lines were"
        console.print(f"{lines} refused and left empty")
        raise typer.Exit(3)


def _told(error: "InputError", name: str, partial: Path | None) -> "InputError":
    """The error with the place of the line, if it is one line's, and where the lines before it are."""
    if error.line is None:
        return error
    so_far = f" (the lines before are in {partial}; mend it, then --resume)" if partial else ""
    return type(error)(f"{name}, line {error.line}: {error}{so_far}")


def _streamed(translator: "Translator", stretch: "Stretch", *, skip_refused: bool) -> Iterator[str]:
    """The pieces of all lines as they come, each line ended."""
    from ..errors import InputError

    for number, line in enumerate(stretch.lines, start=stretch.first):
        try:
            yield from (" ".join(piece.split("\n")) for piece in translator.stream(line))
        except InputError as error:
            if not skip_refused:
                raise InputError(str(error), line=number) from error
            stretch.refused[number] = str(error)
        yield "\n"


def _refuse_beside_stream(options: dict[str, object]) -> None:
    from ..errors import ConfigError

    if given := [name for name, value in options.items() if value]:
        raise ConfigError(f"--stream shows one greedy translation as it is written; leave out {', '.join(given)}")
