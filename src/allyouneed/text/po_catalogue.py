r"""The messages of a gettext catalogue (.po), read by polib with corrections.

polib has three faults: it does not decode `\a` and C's octal and hexadecimal escapes; it ends a line wherever Python's
`str` does, for example at U+2028; and it drops a string that is not closed. This file replaces these characters with
private characters while polib reads, and refuses unclosed strings.
"""

import re

import polib

_ESCAPES = re.compile(r"((?:\\(?:[0-7]{1,3}|x[0-9A-Fa-f]{1,2}))+)|\\.")  # a run of bytes, or another escape
_STRING_LINE = re.compile(r'(?:msg\w+(?:\[\d+\])?\s*)?"')
_CLOSED = re.compile(r'[^"]*"(?:[^"\\]|\\.)*"')
_LINE_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
_PRIVATE = 0x100000  # from here on, Unicode has only private characters
_HIDDEN = {_PRIVATE + code: code for code in range(0x2100)}


def read_catalogue(text: str) -> polib.POFile:
    """Read the messages of a catalogue. Raises a ValueError, with the line, if it does not follow the format."""
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if _STRING_LINE.match(line) and not _CLOSED.fullmatch(line):
            raise ValueError(f"line {number} has a string that is not closed, or a quotation mark without a backslash")
    try:
        # The added line end makes sure that polib does not take the text for a file's name.
        catalogue = polib.pofile(_hide(_LINE_ENDS, _ESCAPES.sub(_read_escapes, text)) + "\n")
    except (OSError, IndexError) as error:
        raise ValueError(str(error)) from error
    for entry in catalogue:
        entry.msgid, entry.msgid_plural, entry.msgstr = (
            string.translate(_HIDDEN) for string in (entry.msgid, entry.msgid_plural, entry.msgstr)
        )
        entry.msgstr_plural = {number: form.translate(_HIDDEN) for number, form in entry.msgstr_plural.items()}
    return catalogue


def escape_string(string: str) -> str:
    """Escape a string for the place between quotation marks in a catalogue."""
    escaped: str = polib.escape(string)
    return escaped.replace("\a", r"\a")


def unescape_string(written: str) -> str:
    """Decode the escapes of a string that was between quotation marks in a catalogue."""
    string: str = polib.unescape(_ESCAPES.sub(_read_escapes, written))
    return string.translate(_HIDDEN)


def _read_escapes(match: re.Match[str]) -> str:
    if match[1]:
        codes = re.findall(r"\\(?:x(\w+)|(\d+))", match[1])
        values = bytes(int(code, 16) if code else int(octal, 8) & 0xFF for code, octal in codes)
        return _hide(re.compile(r'[\x00-\x1f"\\]'), values.decode(errors="replace"))
    return chr(_PRIVATE + 7) if match[0] == r"\a" else match[0]


def _hide(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: chr(_PRIVATE + ord(match[0])), text)
