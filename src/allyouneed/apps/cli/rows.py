"""Translations as rows of the output: text with tabs, or JSON."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...errors import InputError
from ...files import to_json
from .flow import Chunk

if TYPE_CHECKING:
    from ...translator import Translation, Translator


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What a row has, as the options of `translate` say."""

    prefix: str
    alternatives: int
    align: str | None
    json: bool
    skip_refused: bool


def row_maker(load: Callable[[], "Translator"], options: RowOptions) -> Callable[[Chunk], Chunk]:
    """A function that adds a row for each line to a chunk, in this process or another, with the translator of `load`.

    A line that is refused is recorded with `skip_refused`; otherwise the rows end before it, and the chunk has its
    error.
    """
    translator = load()

    def make_rows(chunk: Chunk, end: int | None = None) -> Chunk:
        def refuse(error: InputError) -> None:
            chunk.refused[cast(int, error.line)] = str(error)

        try:
            translations = translator.translations(
                chunk.lines[:end], prefix=options.prefix, alternatives=options.alternatives, align=options.align,
                first_line=chunk.first, on_refused=refuse if options.skip_refused else None,
            )  # fmt: skip
            for number, one in enumerate(translations, start=chunk.first):
                row = as_json(one, error=chunk.refused.get(number)) if options.json else as_text(one)
                chunk.rows.append(f"{row}\n")
        except InputError as error:
            chunk.error = error
            if error.line and not chunk.rows:  # the line was found before any was translated
                make_rows(chunk, error.line - chunk.first)
        return chunk

    return make_rows


def as_text(translation: "Translation") -> str:
    """The text, its alternatives and its alignment, separated by tabs."""
    # A line break or a tab inside a translation would shift the following lines or columns.
    texts = [translation.text, *(other.text for other in translation.alternatives)]
    columns = [text.replace("\t", " ") if len(texts) > 1 or translation.alignment else text for text in texts]
    if translation.alignment is not None:
        columns.append(str(translation.alignment))
    return "\t".join(re.sub(r"[\r\n]+", " ", column.strip("\r\n")) for column in columns)


def as_json(translation: "Translation", *, error: str | None = None) -> str:
    """A JSON object; its units are those that an alignment counts. `error` is the reason of a refusal."""
    row: dict[str, object] = {
        "source": translation.source,
        "text": translation.text,
        "confidence": round(translation.confidence, 6),
        "flags": translation.flags,
    }
    if translation.alternatives:
        row["alternatives"] = [
            {"text": other.text, "confidence": round(other.confidence, 6), "flags": other.flags}
            for other in translation.alternatives
        ]
    if translation.alignment is not None:
        row["alignment"] = str(translation.alignment)
        row["source_units"], row["target_units"] = translation.alignment.source, translation.alignment.target
    if error is not None:
        row["error"] = error
    return to_json(row)
