"""The lines of a gettext catalogue: where translations and flags stand, and how gettext writes them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...po_catalogue import escape_string, unescape_string

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEYWORD = re.compile(r"[ \t]*(#~[ \t]*)?(msgctxt|msgid_plural|msgid|msgstr)\b")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_WIDTH = 79  # characters of a line, at which gettext wraps


@dataclass(slots=True)
class MessageLines:
    """Where a message stands: characters of the catalogue, and the line of its `msgid`.

    Flags go before `start`. `flags` is the line that it has, and `strings` are all its `msgstr` lines, each with its
    line end. `has_id`: its `msgid` is not empty; `has_context`: it has a `msgctxt`.
    """

    start: int = -1
    flags: tuple[int, int] | None = None
    strings: tuple[int, int] = (0, 0)
    key: str = ""
    has_id: bool = False
    has_context: bool = False


def find_messages(text: str) -> list[MessageLines]:
    """The messages of a catalogue that polib can read, the header and obsolete ones among them, in their order."""
    messages: list[MessageLines] = []
    current = MessageLines()
    state = ""  # the keyword that the last string belongs to
    for number, line in enumerate(_LINE.finditer(text), start=1):
        content = line.group().strip()
        keyword = _KEYWORD.match(line.group())
        if (
            state == "msgstr"
            and not content.removeprefix("#~").lstrip().startswith('"')
            and not (keyword and keyword[2] == "msgstr")
        ):
            current, state = MessageLines(), ""
        if keyword:
            state = keyword[2]
            if current.start < 0:
                current.start = line.start()
            if state == "msgid":
                current.key = f"line {number}"
                messages.append(current)
            elif state == "msgstr" and current.strings == (0, 0):
                current.strings = line.span()
        current.has_context |= state == "msgctxt"
        current.has_id |= state == "msgid" and bool(read_string(line.group()))
        if state == "msgstr" and content:
            current.strings = current.strings[0], line.end()
        elif content.startswith("#,") and current.start < 0:
            current.flags = line.span()
        elif content.startswith("#|") and current.start < 0:
            current.start = line.start()
    return messages


class LineStyle(NamedTuple):
    """How a catalogue breaks its strings: at a width, after line feeds, or not at all."""

    wrapped: bool
    broken: bool

    @classmethod
    def detect(cls, text: str) -> "LineStyle":
        """Not wrapped: strings with blanks take more than 80 characters. Not broken: text follows a line feed."""
        lines = [line.group().strip() for line in _LINE.finditer(text) if line.group().rstrip().endswith('"')]
        wrapped = not any(len(line) > _WIDTH + 1 and " " in line[10:_WIDTH] for line in lines)
        return cls(wrapped, not any(re.search(r'(?<!\\)\\n[^"]', line) for line in lines))

    def string_lines(self, keyword: str, string: str, newline: str) -> str:
        """A string in lines, each with its end."""
        pieces = re.findall(r"[^\n]*\n|[^\n]+", string) if self.broken else [string]
        parts = [escape_string(piece) for piece in pieces] or [""]
        if len(parts) > 1 or (self.wrapped and len(f'{keyword} "{parts[0]}"') > _WIDTH):
            parts = ["", *(line for part in parts for line in (_wrap(part, _WIDTH - 2) if self.wrapped else [part]))]
        first, *others = parts
        return "".join([f'{keyword} "{first}"{newline}', *(f'"{part}"{newline}' for part in others)])


def _wrap(part: str, width: int) -> Iterator[str]:
    """Lines of at most `width` characters, broken after blanks; a longer word is not broken."""
    line = ""
    for word in re.findall(r"\S*\s*", part):
        if line and len(line) + len(word.rstrip()) > width:
            yield line
            line = ""
        line += word
    yield line


def with_fuzzy(line: str, newline: str) -> str:
    """A line of flags, which may be empty, with the flag "fuzzy"."""
    flags = [flag.strip() for flag in line.strip().removeprefix("#,").split(",") if flag.strip()]
    return line if "fuzzy" in flags else f"#, {', '.join(['fuzzy', *flags])}{newline}"


def read_string(lines: str) -> str:
    """The string that is written in lines of a catalogue."""
    return "".join(unescape_string(match[1]) for match in _STRING.finditer(lines))
