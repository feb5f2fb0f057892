"""`allyouneed translate` for documents, which are read as a whole and written completely or not at all."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...config.language_tags import find_language
from ...errors import ConfigError, InputError
from ...machine.files import to_json, write_whole
from ...text.lines import ARCHIVES, opened
from ..documents import FORMATS, Document, DocumentOptions, document_format, read_document
from .program import shell_command
from .screen import console, progress

if TYPE_CHECKING:
    from ...translator import Translator
    from ..documents.document_translation import DocumentTranslation

LINES = "lines"
# Endings of files with one text per line, besides languages. Other files may have a structure that this would destroy.
TEXT_ENDINGS = {
    "", "text", "source", "src", "target", "trg", "tgt", "ref", "hyp", "input", "in", "output", "out", "train",
    "valid", "dev", "test", "sent", "snt", "lines", "raw", "tok", "norm", "clean",
}  # fmt: skip
_SHOWN = 20  # units to review that are shown on the screen


def _option(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel="Documents")


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSettings:
    """The options that apply to documents only."""

    form: Annotated[str | None, _option("--format", f"{LINES}, {', '.join(FORMATS)}.")] = None
    target_language: Annotated[str, _option("--target-language", "Such as pt-BR. Default: the bundle's.")] = ""
    encoding: Annotated[str, _option("--encoding", "Encoding. Default: as the file says, else UTF-8.")] = ""
    column: Annotated[str, _option("--column", "Column of a table to translate, by name or number.")] = ""
    into: Annotated[str, _option("--into", "Column for the translations. Default: the same.")] = ""
    keys: Annotated[
        list[str] | None, _option("--key", "JSON path, such as menu.*.title. Repeatable.", metavar="PATH")
    ] = None
    numbers: Annotated[bool, _option("--numbers", "Also translate texts without a letter: 1990-05-12.")] = False
    min_confidence: Annotated[
        float | None, _option("--min-confidence", "Mark less confident units for review. Default: -1.")
    ] = None
    review: Annotated[Path | None, _option("--review", "Write the list of units to review as JSON Lines.")] = None


def document_kind(file: str, form: str | None) -> str | None:
    """Return the format of a document, or None for plain text with one sentence per line. Refuses other formats."""
    if form is not None:
        if form not in (LINES, *FORMATS):
            raise ConfigError(f"--format must be {LINES} or one of {', '.join(FORMATS)}; got {form!r}")
        return None if form == LINES else form
    path = Path(file)
    is_archive = path.suffix.lower() in ARCHIVES
    name = path.stem if is_archive else path.name
    kind = document_format(name)
    if kind not in (None, "txt") and is_archive:
        raise InputError(f"{file} is a packed document; unpack it first, or translate its lines with --format {LINES}")
    if Path(name).suffix.lower() == ".tmx":
        raise InputError(
            f"{file} is a translation memory, which already has translations: train on it with "
            f"{shell_command('train', file)}, or name it in a recipe"
        )
    if file != "-" and kind is None and not has_text_ending(name):
        raise InputError(
            f"{file} is a document in an unknown format; known formats are {', '.join(FORMATS)}. "
            f"To translate its lines as plain text, add --format {LINES}"
        )
    return None if kind == "txt" else kind


def has_text_ending(name: str) -> bool:
    """Return True if a file's ending means one text per line: no ending, a language, or an ending for such files."""
    ending = Path(name).suffix.removeprefix(".")
    return ending.lower() in TEXT_ENDINGS or ending.isdecimal() or bool(find_language(ending))


def open_document(file: str, kind: str, options: DocumentOptions) -> Document:
    """Read a document from a file, or from standard input ("-")."""
    if file == "-":
        return read_document(sys.stdin.buffer.read(), kind, options, name="standard input")
    with opened(Path(file)) as stream:
        return read_document(stream.read(), kind, options, name=file)


def translate_file(
    document: Document,
    translator: "Translator",
    output: Path,
    settings: DocumentSettings,
    *,
    skip_refused: bool,
) -> int:
    """Translate a document into a file, and list the units that a person should review. Returns the exit code."""
    from ..documents.document_translation import MIN_CONFIDENCE, finish_document, plan_document, translate_plan

    plan = plan_document(document, translator)
    with progress("translating", total=len(plan.aligned) + len(plan.plain)) as done:
        answers = translate_plan(plan, translator, on_progress=done, skip_refused=skip_refused)
    threshold = MIN_CONFIDENCE if settings.min_confidence is None else settings.min_confidence
    result = finish_document(plan, answers, min_confidence=threshold)
    write_whole(output, result.data)
    if settings.review is not None:
        write_whole(settings.review, "".join(f"{to_json(item._asdict())}\n" for item in result.review))
    if result.units == result.kept:
        console.print(f"{output}: {_nothing(document, result.units, numbers=settings.numbers)}; it is a copy")
        return 0
    _print_summary(result, output, settings.review)
    return 3 if result.refused else 0


def _nothing(document: Document, units: int, *, numbers: bool) -> str:
    """Say why a document has nothing to translate."""
    if units:
        return f"nothing to translate: {units:,} unit{' is' if units == 1 else 's are'} already translated"
    if numbers:
        return "nothing to translate: it has no text"
    hint = "" if document.copies_numbers else " (see --numbers)"
    return f"nothing to translate: it has no letters, and numbers stay as they are{hint}"


def _print_summary(result: "DocumentTranslation", output: Path, review: Path | None) -> None:
    units = f"{result.units:,} unit{'' if result.units == 1 else 's'}"
    counts = f"{units}, {result.translated:,} translated, {result.kept:,} kept"
    if result.refused:
        counts += f", {result.refused:,} refused and left as they were"
    console.print(f"{output}: {counts}")
    if result.review:
        where = f"; all of them are in {review}" if review else ""
        console.print(f"{len(result.review):,} to review{where}:")
    for item in result.review[:_SHOWN]:
        where = f"{item.key}: " if item.key else ""
        source = " ".join(item.source.split())
        console.print(f"  {where}{', '.join(item.reasons)}: {source[:60]}{'…' * (len(source) > 60)}")
    if len(result.review) > _SHOWN:
        rest = "" if review else "; --review FILE writes all of them"
        console.print(f"  … and {len(result.review) - _SHOWN:,} more{rest}")
