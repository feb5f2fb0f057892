"""`allyouneed translate`: write one output line for every input line, or translate a document."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from ...errors import ConfigError
from ...machine.files import check_output_file, named_folders
from ...machine.interpreter import uncollected
from ...text.glossary import Glossary
from ..documents import DocumentOptions
from . import document as documents
from .chunks import Chunk, RowOptions, is_typed_text, read_chunks, row_maker
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
from .resumable import RowWriter, check_output, partial_path, row_writer
from .screen import announce_pipes, console, progress, prompt

if TYPE_CHECKING:
    from ...errors import DataError, InputError
    from ...translator import Translator


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslateOptions:
    """The options of `allyouneed translate`, besides the settings of documents and of the search."""

    bundle: BundleFolders
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TEXT",
            help="A file of lines, a document, - for standard input, or a text.",
            show_default=False,
        ),
    ] = "-"
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; FILE.partial until complete.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted output.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output file.")] = False
    skip_refused: Annotated[
        bool, typer.Option("--skip-refused", help="Skip untranslatable texts, and exit with 3.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False
    align: Annotated[
        str | None,
        typer.Option("--alignments", metavar="words|tokens", help="Append the aligned words or tokens as i-j."),
    ] = None
    stream: Annotated[bool, typer.Option("--stream", help="Show each word as it is written.")] = False
    device: DeviceOption = "auto"
    precision: PrecisionOption = "auto"
    ray: Annotated[str, typer.Option(metavar="ADDRESS", help="Use this Ray cluster; local: start one here.")] = ""
    glossary: GlossaryOption = None
    prefix: Annotated[str, typer.Option(help="The beginning of every translation.", rich_help_panel="Search")] = ""
    alternatives: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Print N ways to continue the prefix.",
            min=0,
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = 0


@with_search("beam", "nbest", "sample", "max_length", "batch_size")
@with_options(documents.DocumentSettings, "about")
@with_options(TranslateOptions, "options")
def translate(options: TranslateOptions, about: documents.DocumentSettings, decode: SearchSettings) -> None:
    """Translate text line by line, or a document with its structure kept.

    For example:
      allyouneed translate runs/dates 1845-01-05
      allyouneed translate runs/mine a.en --glossary terms.tsv decode.alpha=1
      allyouneed translate runs/mine manual.docx --output manual.it.docx
    """
    _refuse_combinations(options, decode)
    source = _find_source(options.file, about.form)
    kind = _find_kind(source, options, about, decode)
    folders = named_folders(options.bundle)
    _check_files(folders, source, options, about)
    if options.output and options.resume and options.output.is_file():
        console.print(f"{options.output} is already complete; nothing to resume")
        return
    announce_pipes(options.glossary, options.output, *source.paths())
    terms = Glossary.read(options.glossary) if options.glossary else None
    load = _make_loader(folders, terms, options, decode)
    if kind and options.output:
        code = _translate_document(source.file, kind, options.output, load, options, about)
    else:
        code = _translate_lines(source, load, terms, options, with_scores="nbest" in decode)
    if code:
        raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class Source:
    """The input: a file, standard input ("-"), or a text on the command line."""

    file: str
    text: str | None = None

    def paths(self) -> list[Path]:
        """Return the file in a list, or [] for other inputs."""
        return [] if self.file == "-" else [Path(self.file)]

    def name(self) -> str:
        """Return the name of the input in messages."""
        if self.text is not None:
            return "the text"
        return "standard input" if self.file == "-" else self.file


def _lines_only(options: TranslateOptions, decode: SearchSettings) -> dict[str, object]:
    """Return the options that only apply to line-by-line translation into a complete output."""
    return {
        "--json": options.json,
        "--alignments": options.align,
        "--alternatives": options.alternatives,
        "--prefix": options.prefix.strip(),
        "--ray": options.ray,
        "--nbest": decode.get("nbest"),
    }


def _refuse_combinations(options: TranslateOptions, decode: SearchSettings) -> None:
    if options.stream:
        greedy = {"--output": options.output, "--beam": decode.get("beam")}
        why = "--stream shows one greedy translation as it is written"
        refuse_options(_lines_only(options, decode) | greedy, why)
    if options.resume and (options.output is None or options.overwrite):
        raise ConfigError("--resume needs --output FILE, and cannot be used with --overwrite")


def _find_source(file: str, form: str | None) -> Source:
    """Decide whether an argument is a text or the name of a file."""
    if form is None and is_typed_text(file):
        console.print(f"there is no file {file!r}; translating it as a text")
        return Source("-", file)
    return Source(file)


def _find_kind(
    source: Source, options: TranslateOptions, about: documents.DocumentSettings, decode: SearchSettings
) -> str | None:
    """Find the format of a document; None for lines of text. Refuses options that apply only to the other kind."""
    kind = documents.document_kind(source.file, about.form)
    if kind is None:
        refuse_options(about, "this is text, one sentence per line (see --format)", besides=["--format"])
    elif options.output is None:
        raise ConfigError("a document needs --output FILE")
    else:
        others = {"--stream": options.stream, "--resume": options.resume}
        refuse_options(_lines_only(options, decode) | others, "a document is translated as a whole")
    return kind


def _check_files(
    folders: Sequence[Path], source: Source, options: TranslateOptions, about: documents.DocumentSettings
) -> None:
    """Refuse outputs that exist, cannot be written, or are an input or a file of the model."""
    source_file = 0 if source.file == "-" else Path(source.file)
    inputs = [source_file, *filter(None, [options.glossary])]
    models = [path for folder in folders for ending in ("json", "safetensors") for path in folder.glob(f"*.{ending}")]
    check_output(options.output, [*inputs, *models], resume=options.resume, overwrite=options.overwrite)
    if about.review is not None:
        others = [*inputs, *models, *filter(None, [options.output])]
        check_output_file(about.review, what="the list", overwrite=options.overwrite, inputs=others)


def _make_loader(
    folders: Sequence[Path], terms: Glossary | None, options: TranslateOptions, decode: SearchSettings
) -> Callable[[], "Translator"]:
    """Import the translator, and return a function that loads the model, here or in another process."""
    with uncollected():
        from ...machine.device import retain_freed_memory
        from ...translator import Translator

    retain_freed_memory()
    return partial(
        Translator.load,
        *(folder.resolve() for folder in folders),
        device=options.device,
        precision=options.precision,
        glossary=terms,
        **decode,
    )


def _translate_document(
    file: str,
    kind: str,
    output: Path,
    load: Callable[[], "Translator"],
    options: TranslateOptions,
    about: documents.DocumentSettings,
) -> int:
    """Translate a document into the file `output`. Returns the exit code."""
    from ...bundle_parts import read_config

    source_language, target_language = read_config(named_folders(options.bundle)[0]).languages
    settings = DocumentOptions(
        about.target_language or target_language,
        about.encoding,
        about.column,
        about.into,
        tuple(about.keys or ()),
        numbers=about.numbers,
        source_language=source_language,
    )
    document = documents.open_document(file, kind, settings)  # refuses a bad document before the model is loaded
    return documents.translate_file(document, load(), output, about, skip_refused=options.skip_refused)


def _translate_lines(
    source: Source,
    load: Callable[[], "Translator"],
    terms: Glossary | None,
    options: TranslateOptions,
    *,
    with_scores: bool,
) -> int:
    """Translate line by line. Returns the exit code."""
    from ...machine.cluster import cluster_map

    translator = load()
    row_options = RowOptions(
        options.prefix.strip(),
        options.alternatives,
        options.align,
        options.json,
        options.skip_refused,
        scores=with_scores,
    )
    provenance = _provenance(translator, terms, row_options, options.bundle) if options.output else {}
    make_rows = partial(row_maker, load if options.ray else lambda: translator, row_options)
    with (
        row_writer(options.output, provenance=provenance, resume=options.resume) as out,
        redirect_stdout(sys.stderr) if options.ray else nullcontext(),  # Ray prints to it when a process has ended
        cluster_map(make_rows, options.ray) as with_rows,
        _progress(source) as done,
    ):
        chunks = out.missing(_read_source(source, translator, options), done)
        if options.stream:
            translated = _streamed(chunks, translator, out.file, options.skip_refused)
        else:
            translated = with_rows(chunks)
        _write_rows(translated, out, source, options.output, done)
    if not out.refused:
        return 0
    lines = "1 line was" if out.refused == 1 else f"{out.refused:,} lines were"
    console.print(f"{lines} refused and left empty")
    return 3


def _provenance(
    translator: "Translator", terms: Glossary | None, row_options: RowOptions, bundle: str
) -> dict[str, object]:
    """Return everything on which the rows depend, except the input.

    To resume an output, all of this must be equal.
    """
    from ...bundle import model_files
    from ...machine.checksums import files_digest

    return {
        "model": files_digest(*(path for folder in named_folders(bundle) for path in model_files(folder))),
        "precision": translator.precision,
        "glossary": terms and terms.fingerprint(),
        "prefix": row_options.prefix,
        "alternatives": row_options.alternatives,
        "alignments": row_options.align,
        "format": "JSON" if row_options.json else "text",
        "skip_refused": row_options.skip_refused,
        **asdict(translator.decode),
    }


def _read_source(source: Source, translator: "Translator", options: TranslateOptions) -> Iterator[Chunk]:
    from ...translator import WINDOW

    size = WINDOW * translator.decode.batch_size
    live = options.output is None
    return read_chunks(source.file, size=size, live=live, skip_refused=options.skip_refused, text=source.text)


def _progress(source: Source) -> AbstractContextManager[Callable[[int], None]]:
    """Show how many lines are done; at a terminal, show that it waits for a line; for a single text, show nothing."""
    if source.text is not None:
        return nullcontext(_ignore)
    if source.file == "-" and sys.stdin.isatty():
        return prompt()
    return progress("translating", total=None)


def _ignore(_: int) -> None: ...


def _write_rows(
    chunks: Iterable[Chunk], out: RowWriter, source: Source, output: Path | None, done: Callable[[int], None]
) -> None:
    """Write the rows of each chunk as soon as it is translated, and name the lines that were refused."""
    for chunk in chunks:
        out.write(chunk)
        for number, reason in sorted(chunk.refused.items()):
            console.print(f"{source.name()}, line {number}, left out: {reason}")
        if chunk.error:
            partial_output = partial_path(output) if output and out.lines else None
            raise locate_error(chunk.error, source.name(), partial_output)
        done(len(chunk.lines))


def locate_error(error: "DataError | InputError", name: str, partial: Path | None) -> "DataError | InputError":
    """Add the line number, if any, and the file with the translations of earlier lines, to an error."""
    from ...errors import DataError

    so_far = f" (the lines before are in {partial}; correct the line, then --resume)" if partial else ""
    if isinstance(error, DataError):  # the error names its line
        return DataError(f"{error}{so_far}")
    return error if error.line is None else type(error)(f"{name}, line {error.line}: {error}{so_far}")


def _streamed(chunks: Iterable[Chunk], translator: "Translator", file: BinaryIO, skip_refused: bool) -> Iterator[Chunk]:
    """Write translations piece by piece, with a line end after each, and yield their chunks."""
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
