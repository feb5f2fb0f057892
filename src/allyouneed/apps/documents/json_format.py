"""JSON and JSON Lines: string values are units. Python's json module checks the file, and this file finds positions.

Only strings that change are rewritten, in the way the document writes strings. Everything else (order, indentation,
numbers, repeated keys) keeps its bytes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from ...errors import DocumentError
from ...machine.files import parse_json
from .encoded_text import Edit, EncodedText, decode_text
from .pieces import LONE_SURROGATE
from .string_unit import StringUnit
from .unit import Document, DocumentOptions, UnitTranslation

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)


class JsonPart(NamedTuple):
    """A part of a file that is valid JSON, and its position. `where` names the part, if there are several."""

    text: str
    start: int = 0
    where: str = ""


class JsonString(NamedTuple):
    """A string value: the keys and indices that lead to it, and its characters with the quotes around them."""

    path: tuple[str, ...]
    start: int
    end: int


def read_json_document(data: bytes, options: DocumentOptions) -> Document:
    """Read the string values whose path (`menu.items.0`) matches one of the options' `keys`; without `keys`, all.

    Without `keys`, notes on messages in ARB files (values under a key that begins with "@") are left out. "@@locale"
    becomes the target language, if the target language is known and a string was translated.
    """
    encoded = decode_text(data, options.encoding)
    try:
        parse_json(encoded.text)
    except ValueError as error:
        raise DocumentError(str(error)) from error
    return json_document(encoded, [JsonPart(encoded.text)], options)


def json_document(encoded: EncodedText, parts: Iterable[JsonPart], options: DocumentOptions) -> Document:
    """Make the document of a file whose `parts` are JSON."""
    strings: list[tuple[JsonString, StringUnit]] = []
    keys: list[str] = []  # keys of the units
    locales: list[JsonString] = []
    for part in parts:
        for value in _find_strings(part):
            if value.path == ("@@locale",):
                locales.append(value)
                continue
            string = json.loads(encoded.text[value.start : value.end], strict=False)
            if _is_chosen(value.path, options.keys) and not LONE_SURROGATE.search(string):
                strings.append((value, StringUnit(string, numbers=options.numbers)))
                keys.append(": ".join(filter(None, (part.where, ".".join(value.path)))))
    if options.keys and not strings:
        raise DocumentError(f"has no string whose keys match {' or '.join(options.keys)}")
    units = tuple(string.unit(key) for (_, string), key in zip(strings, keys, strict=True) if string.has_words)
    strings = [(value, string) for value, string in strings if string.has_words]

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        new_strings = [
            (value, string.translated(new)) for (value, string), new in zip(strings, translations, strict=True) if new
        ]
        if options.target_language and any(translations):
            new_strings += [(value, options.target_language.replace("-", "_")) for value in locales]
        return encoded.replaced(
            Edit(value.start, value.end, _write_string(text, encoded.text[value.start : value.end], encoded.text))
            for value, text in new_strings
        )

    return Document(units, write)


def _find_strings(part: JsonPart) -> Iterator[JsonString]:
    """Yield the string values of a part, but not its keys."""
    path: list[str | int] = []  # the key or index of each object and list around a value
    expects_key = False
    for token in _TOKEN.finditer(part.text):
        match token.group():
            case "{" | "[" as opening:
                expects_key = opening == "{"
                path.append("" if expects_key else 0)
            case "}" | "]":
                path.pop()
                expects_key = False
            case ",":
                index = path[-1]
                expects_key = isinstance(index, str)
                if isinstance(index, int):
                    path[-1] = index + 1
            case ":":
                expects_key = False
            case string if string[0] == '"':
                if expects_key:
                    path[-1] = json.loads(string, strict=False)
                else:
                    start, end = token.span()
                    yield JsonString(tuple(map(str, path)), part.start + start, part.start + end)


def _is_chosen(path: tuple[str, ...], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not any(key.startswith("@") for key in path)
    return any(fnmatchcase(".".join(path), pattern) for pattern in patterns)


# Characters that strings may escape unnecessarily: a pattern of the escape, and of the bare character.
_ALL_BUT_ASCII = (r"\\u(?!00[0-7])", r"[^\x00-\x7f]")
_SLASHES = (r"\\/", r"(?<!\\)/")  # as in PHP
_MARKUP = (r"\\u00(?:26|3[ceCE])", r"[<>&]")  # as in Go


def _write_string(text: str, previous: str, document: str) -> str:
    """Write a string with the escapes that the previous string uses or, if it has none, those of the document."""

    def escapes(escape: str, bare: str) -> bool:
        answers = (_is_escaped(written, escape, bare) for written in (previous, document))
        return next((answer for answer in answers if answer is not None), False)

    string = json.dumps(text, ensure_ascii=escapes(*_ALL_BUT_ASCII))
    if escapes(*_SLASHES):
        string = string.replace("/", r"\/")
    if escapes(*_MARKUP):
        string = re.sub(r"[<>&]", lambda match: rf"\u{ord(match.group()):04x}", string)
    return string


@lru_cache(64)
def _is_escaped(written: str, escape: str, bare: str) -> bool | None:
    """Return True if a string or document escapes a sign, False if it has the bare sign, None if it has neither."""
    written = written.replace("\\\\", "")  # escaped backslashes
    if re.search(bare, written):
        return False
    return True if re.search(escape, written) else None


def read_jsonl_document(data: bytes, options: DocumentOptions) -> Document:
    """Read the string values of all lines as JSON. Blank lines stay. Refuses a line that is not JSON, and names it."""
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
