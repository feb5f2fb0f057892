"""JSON Lines (.jsonl): a JSON value on each line."""

from collections.abc import Iterator

from ...errors import DocumentError
from ...files import parse_json
from .encoded_text import decode_text
from .json_format import JsonPart, json_document
from .unit import Document, DocumentOptions


def read_jsonl_document(data: bytes, options: DocumentOptions) -> Document:
    """The string values of all lines, as those of JSON. Blank lines stay; one that is no JSON is refused by number."""
    encoded = decode_text(data, options.encoding)
    return json_document(encoded, _lines(encoded.text), options)


def _lines(text: str) -> Iterator[JsonPart]:
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                parse_json(line)
            except ValueError as error:
                raise DocumentError(f"has a line {number} that {error}") from error
            yield JsonPart(line, start, f"line {number}")
        start += len(line) + 1
