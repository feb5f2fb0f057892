"""Translations as lines: text with tabs, or JSON."""

import re
from typing import TYPE_CHECKING

from ..files import to_json

if TYPE_CHECKING:
    from ..translator import Translation


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
