"""`allyouneed translate`: one output line for every input line."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from ...interpreter import uncollected
from . import document as documents
from .command import (
    BundleFolders,
    DeviceOption,
    GlossaryOption,
    PrecisionOption,
    SearchSettings,
    refuse_options,
    with_options,
    with_search,
)

if TYPE_CHECKING:
    from ...errors import DataError, InputError
    from ...translator import Translator
    from .chunks import Chunk


@with_search("beam", "nbest", "sample", "max_length", "batch_size")
@with_options(documents.DocumentSettings, "about")
def translate(
    bundle: BundleFolders,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TEXT", help="Lines of text, a document, - for standard input, or a text.", show_default=False
        ),
    ] = "-",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; until complete, FILE.partial.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted output.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output file.")] = False,
    skip_refused: Annotated[
        bool, typer.Option("--skip-refused", help="Leave out what is refused, and exit with 3.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print an object a line.")] = False,
    align: Annotated[
        str | None,
        typer.Option("--alignments", metavar="words|tokens", help="Add which are aligned, after a tab, as i-j."),
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Show each word at once.")] = False,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    ray: Annotated[str, typer.Option(metavar="ADDRESS", help="On this Ray cluster; local: on one started here.")] = "",
    glossary: GlossaryOption = None,
    prefix: Annotated[str, typer.Option(help="The beginning of every translation.", rich_help_panel="Search")] = "",
    alternatives: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Continuations of the prefix, separated by tabs.",
            min=0,
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = 0,
    *,
    about: documents.DocumentSettings,
    decode: SearchSettings,
) -> None:
    """Translate text line by line, or a document whole, which keeps its structure.

    For example:
      allyouneed translate runs/dates 1845-01-05
      allyouneed translate runs/mine a.en --glossary terms.tsv decode.alpha=1
      allyouneed translate runs/mine manual.docx --output manual.it.docx
    """
    from contextlib import nullcontext, redirect_stdout
    from dataclasses import asdict
    from functools import partial

    from ...checksums import files_digest
    from ...cluster import cluster_map
    from ...errors import ConfigError
    from ...files import check_output_file, named_folders
    from ...text.glossary import Glossary
    from ..documents import DocumentOptions
    from .chunks import RowOptions, is_typed_text, read_chunks, row_maker
    from .resumable import check_output, partial_path, row_writer
    from .screen import announce_pipes, console, progress, prompt

    prefix = prefix.strip()
    lines_only = {
        "--json": json, "--alignments": align, "--alternatives": alternatives, "--prefix": prefix, "--ray": ray,
        "--nbest": decode.get("nbest"),
    }  # fmt: skip
    if stream:
        greedy = {"--output": output, "--beam": decode.get("beam")}
        refuse_options(lines_only | greedy, "--stream shows one greedy translation as it is written")
    if resume and (output is None or overwrite):
        raise ConfigError("--resume continues the file that --output names, and goes without --overwrite")
    text = None
    if about.form is None and is_typed_text(file):
        console.print(f"{file!r} is no file, so it is translated as a text")
        text, file = file, "-"
    kind = documents.document_kind(file, about.form)
    if kind is None:
        refuse_options(about, "this is text, a sentence a line (see --format)", besides=["--format"])
    elif output is None:
        raise ConfigError("a document is translated into a file: name it with --output")
    else:
        others = {"--stream": stream, "--resume": resume}
        refuse_options(lines_only | others, "a document is translated as a whole")
    inputs = [0 if file == "-" else Path(file), *filter(None, [glossary])]
    folders = named_folders(bundle)
    models = [path for folder in folders for ending in ("json", "safetensors") for path in folder.glob(f"*.{ending}")]
    check_output(output, [*inputs, *models], resume=resume, overwrite=overwrite)
    if output and resume and output.is_file():
        console.print(f"{output} is whole already; there is nothing to go on with")
        return
    if about.review is not None:
        written = filter(None, [output])
        check_output_file(about.review, what="the list", overwrite=overwrite, inputs=[*inputs, *models, *written])
    announce_pipes(glossary, output, *([] if file == "-" else [Path(file)]))
    terms = Glossary.read(glossary) if glossary else None

    with uncollected():
        from ...bundle import model_files, read_languages
        from ...device import retain_freed_memory
        from ...translator import WINDOW, Translator

    retain_freed_memory()
    load = partial(
        Translator.load,
        *(folder.resolve() for folder in folders),
        device=device,
        precision=precision,
        glossary=terms,
        **decode,
    )
    if kind and output:
        options = DocumentOptions(
            about.target_language or read_languages(folders[0])[1], about.encoding, about.column, about.into,
            tuple(about.keys or ()), numbers=about.numbers, source_language=read_languages(folders[0])[0],
        )  # fmt: skip
        document = documents.open_document(file, kind, options)  # refuses it before the model is loaded
        code = documents.translate_file(document, load(), output, about, skip_refused=skip_refused)
        raise typer.Exit(code)

    translator = load()
    name = "standard input" if file == "-" and text is None else "the text" if file == "-" else file
    row_options = RowOptions(prefix, alternatives, align, json, skip_refused)
    provenance = {
        "model": files_digest(*(path for folder in folders for path in model_files(folder))),
        "precision": translator.precision, "glossary": terms and terms.fingerprint(), "prefix": prefix,
        "alternatives": alternatives, "alignments": align, "format": "JSON" if json else "text",
        "skip_refused": skip_refused,
        **asdict(translator.decode),
    } if output else {}  # fmt: skip
    size = WINDOW * translator.decode.batch_size
    is_typed = file == "-" and text is None and sys.stdin.isatty()
    asking = prompt() if is_typed else nullcontext(_ignore) if text else progress("translating", total=None)
    with (
        row_writer(output, provenance=provenance, resume=resume) as out,
        redirect_stdout(sys.stderr) if ray else nullcontext(),  # Ray prints there that a process has ended
        cluster_map(partial(row_maker, load if ray else lambda: translator, row_options), ray) as with_rows,
        asking as done,
    ):
        chunks = out.missing(
            read_chunks(file, size=size, live=output is None, skip_refused=skip_refused, text=text), done
        )
        for chunk in _streamed(chunks, translator, out.file, skip_refused) if stream else with_rows(chunks):
            out.write(chunk)
            for number, reason in sorted(chunk.refused.items()):
                console.print(f"{name}, line {number}, left out: {reason}")
            if chunk.error:
                raise locate_error(chunk.error, name, partial_path(output) if output and out.lines else None)
            done(len(chunk.lines))
    if out.refused:
        lines = "1 line was" if out.refused == 1 else f"{out.refused:,} lines were"
        console.print(f"{lines} refused and left empty")
        raise typer.Exit(3)


def _ignore(_: int) -> None: ...


def locate_error(error: "DataError | InputError", name: str, partial: Path | None) -> "DataError | InputError":
    """The error with the number of its line, if it has one, and with the file of the lines before it."""
    from ...errors import DataError

    so_far = f" (the lines before are in {partial}; correct the line, then --resume)" if partial else ""
    if isinstance(error, DataError):  # names its line
        return DataError(f"{error}{so_far}")
    return error if error.line is None else type(error)(f"{name}, line {error.line}: {error}{so_far}")


def _streamed(
    chunks: Iterable["Chunk"], translator: "Translator", file: BinaryIO, skip_refused: bool
) -> Iterator["Chunk"]:
    """The chunks, the pieces of whose translations have been written as they came, each line ended."""
    from ...errors import InputError

    for chunk in chunks:
        for number, line in enumerate(chunk.lines, start=chunk.first):
            try:
                for piece in translator.stream(line):
                    file.write(" ".join(piece.split("\n")).encode())
                    file.flush()
            except InputError as error:
                if not skip_refused:
                    chunk.error = InputError(str(error), line=number)
                    break
                chunk.refused[number] = str(error)
            file.write(b"\n")
        yield chunk
