"""gettext catalogues (.po, .pot): `po_catalogue` reads the messages, and this file finds where translations belong.

It rewrites only the `msgstr` of messages that get a translation, and the flags of messages to review. Everything else
keeps its bytes: comments, order and wrapping of lines, and translated, fuzzy and obsolete messages.
"""

import gettext
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polib

from ...errors import DocumentError
from ...text.po_catalogue import escape_string, read_catalogue, unescape_string
from ...text.spans import find_spans
from .encoded_text import Edit, EncodedText, decode_text
from .string_unit import StringUnit, is_same_in_all_languages
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation

_RULES = {
    "nplurals=1; plural=0;": "id ja ka ko lo ms th vi zh",
    "nplurals=2; plural=(n != 1);": (
        "af an ast az bg bn ca da de el en eo es et eu fi fo fur fy gl gu ha he hu hy ia is it kk kn ku ky lb mk ml mn "
        "mr nb ne nl nn no pa pap ps pt rm sq sv sw ta te tk tr ug ur uz yo"
    ),
    "nplurals=2; plural=(n > 1);": "ach ak am arn br fa fil fr gun hi ln mfe mg mi oc pt_br si tg ti tl wa",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": (
        "be bs hr ru sr uk"
    ),
    "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": "pl",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2);": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4);": "ga",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
}
_BY_LANGUAGE = {language: rule for rule, languages in _RULES.items() for language in languages.split()}
_HEADER = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]{1,500})")
_NUMBERS = range(201)  # every CLDR rule for whole numbers repeats after 100


class PluralForms(NamedTuple):
    """How many plural forms a language has, and which form is used for each number."""

    nplurals: int
    form: Callable[[int], int]

    def numbers(self, form: int) -> list[int]:
        """Return the numbers up to 200 for which a form is used."""
        return [n for n in _NUMBERS if self.form(n) == form]


def plural_rule(language: str) -> str | None:
    """Return the `Plural-Forms` of a language (`it`, `pt_BR`), or None if it is unknown here."""
    code = language.lower().replace("-", "_")
    return _BY_LANGUAGE.get(code) or _BY_LANGUAGE.get(code.partition("_")[0])


def parse_plural_forms(header: str) -> PluralForms | None:
    """Read a `Plural-Forms` field; None if it is not a rule (a template has "plural=EXPRESSION")."""
    match = _HEADER.search(header)
    if match is None:
        return None
    try:
        forms = PluralForms(int(match[1]), gettext.c2py(match[2]))
        correct = all(0 <= forms.form(n) < forms.nplurals for n in _NUMBERS)
    except (ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return None
    return forms if correct else None


_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEYWORD = re.compile(r"[ \t]*(#~[ \t]*)?(msgctxt|msgid_plural|msgid|msgstr)\b")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_WIDTH = 79  # characters in a line, at which gettext wraps


@dataclass(slots=True)
class MessageLines:
    """The place of a message: its characters in the catalogue, and the line of its `msgid`.

    New flags are inserted before `start`. `flags` is its existing line of flags, and `strings` are all its `msgstr`
    lines, each with its line end. `has_id` is True if its `msgid` is not empty, and `has_context` if it has a
    `msgctxt`.
    """

    start: int = -1
    flags: tuple[int, int] | None = None
    strings: tuple[int, int] = (0, 0)
    key: str = ""
    has_id: bool = False
    has_context: bool = False


def find_messages(text: str) -> list[MessageLines]:
    """Find the messages of a catalogue that polib can read, in order, with the header and obsolete messages."""
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
        """Detect the style: wrapped, if no string with blanks exceeds 80 characters; broken after line feeds or not."""
        lines = [line.group().strip() for line in _LINE.finditer(text) if line.group().rstrip().endswith('"')]
        wrapped = not any(len(line) > _WIDTH + 1 and " " in line[10:_WIDTH] for line in lines)
        return cls(wrapped, not any(re.search(r'(?<!\\)\\n[^"]', line) for line in lines))

    def string_lines(self, keyword: str, string: str, newline: str) -> str:
        """Write a string in lines, each with its line end."""
        pieces = re.findall(r"[^\n]*\n|[^\n]+", string) if self.broken else [string]
        parts = [escape_string(piece) for piece in pieces] or [""]
        if len(parts) > 1 or (self.wrapped and len(f'{keyword} "{parts[0]}"') > _WIDTH):
            parts = ["", *(line for part in parts for line in (_wrap(part, _WIDTH - 2) if self.wrapped else [part]))]
        first, *others = parts
        return "".join([f'{keyword} "{first}"{newline}', *(f'"{part}"{newline}' for part in others)])


def _wrap(part: str, width: int) -> Iterator[str]:
    """Break a string after blanks into lines of at most `width` characters. A longer word stays whole."""
    line = ""
    for word in re.findall(r"\S*\s*", part):
        if line and len(line) + len(word.rstrip()) > width:
            yield line
            line = ""
        line += word
    yield line


def with_fuzzy(line: str, newline: str) -> str:
    """Add the flag "fuzzy" to a line of flags, which may be empty."""
    flags = [flag.strip() for flag in line.strip().removeprefix("#,").split(",") if flag.strip()]
    return line if "fuzzy" in flags else f"#, {', '.join(['fuzzy', *flags])}{newline}"


def read_string(lines: str) -> str:
    """Read the string written in some lines of a catalogue."""
    return "".join(unescape_string(match[1]) for match in _STRING.finditer(lines))


_CHARSET = re.compile(rb"charset=([\w.:-]+)")
_SAME_TEXT = "one of several plural forms that got the translation of the same text"


# The parts of all gettext formats (c-format, python-brace-format, scheme-format …) in one pattern. A part that differs
# from the message may be an error for `msgfmt -c`. Named and numbered arguments may change places.
_DIRECTIVE = re.compile(
    r"%(?:\([^()]*+\)|\{[^{}]*+\}|<[^<>]*+>)?[^A-Za-z%]*+(?:hh|ll|[hlLqjztZ](?=[A-Za-z]))?[A-Za-z%]?"
    r"|[$#@]?\{[^{}]*+\}?|\}|~[^A-Za-z~]*+[A-Za-z~]?|\$\w*+|<[^<>]*+>?|[>@\\|^#`]"
)
_MOVABLE = re.compile(r"%\(|%<|%\{|%L?\d+(?:\$|:|\Z|[^\w.])|\{\s*\w|[$#@]\{|\$\w|%%")


class MessageFormat(NamedTuple):
    """How the strings of a message are to be read, according to its flags.

    `has_arguments` is True if a flag such as "c-format" names a format. With `quotes`, an apostrophe is written twice,
    and a single apostrophe begins text that is not an argument, as in Java's MessageFormat.
    """

    has_arguments: bool
    quotes: bool

    @classmethod
    def from_flags(cls, flags: Iterable[str]) -> "MessageFormat":
        """Read the flags of a message; "no-c-format" says that it has no format."""
        named = [flag for flag in flags if flag.endswith("-format") and not flag.startswith(("no-", "possible-"))]
        return cls(bool(named), "java-format" in named)

    def read(self, string: str) -> str:
        """Return a message as the model should read it. Apostrophes that quote something stay unchanged."""
        return string.replace("''", "'") if self._is_doubled(string) else string

    def write(self, translation: str, message: str) -> str:
        """Return a translation in the form that the format requires."""
        return translation.replace("'", "''") if self._is_doubled(message) else translation

    def differs(self, translation: str, message: str) -> bool:
        """Return True if the placeholders of a translation may differ from the placeholders of its message."""
        if not self.has_arguments:
            return False
        parts, others = (_DIRECTIVE.findall(string) for string in (message, translation))
        is_quoted = self.quotes and not self._is_doubled(message) and (message.count("'") != translation.count("'"))
        if all(map(_MOVABLE.match, parts)):
            parts, others = sorted(parts), sorted(others)
        return is_quoted or parts != others

    def _is_doubled(self, message: str) -> bool:
        return self.quotes and "'" not in message.replace("''", "")


class _Form(NamedTuple):
    """One form of a message (if it has plural forms): its number, its source, and its present translation."""

    number: int | None
    message: str
    source: StringUnit
    existing: str
    format: MessageFormat
    reasons: tuple[str, ...] = ()

    def unit(self, key: str) -> TranslationUnit | None:
        """Make the unit; None if there is nothing to translate."""
        if self.existing:
            return TranslationUnit(text=self.message, key=key, translation=self.existing)
        return self.source.unit(key, self.reasons) if self.source.has_words else None

    def text(self, translation: UnitTranslation | None) -> str | None:
        """Return the text to write; None if it is unknown."""
        string = self.message
        if self.existing or not self.source.has_words:
            return self.existing or (string if is_same_in_all_languages(string) else None)
        return None if translation is None else self.format.write(self.source.translated(translation), string)


class _Message(NamedTuple):
    lines: MessageLines
    forms: tuple[_Form, ...]


def read_po_document(data: bytes, options: DocumentOptions) -> Document:
    """Read the messages of a catalogue. Each plural form of the target language is a unit.

    The singular is the source of the form for the number 1; the plural is the source of all other forms. A header
    without charset, language or plural forms gets these, as far as the target language is known. Refuses a catalogue
    that does not follow the format, and names the line.
    """
    encoded = _decode(data, options.encoding)
    try:
        catalogue = read_catalogue(encoded.text)
    except ValueError as error:
        raise DocumentError(f"is not a gettext catalogue: {error}") from error
    rule = plural_rule(options.target_language or catalogue.metadata.get("Language", ""))
    plurals = parse_plural_forms(catalogue.metadata.get("Plural-Forms", "")) or parse_plural_forms(rule or "")
    lines = find_messages(encoded.text)
    header = next((where for where in lines if not where.has_id), None)
    if header and len(lines) == len(catalogue) + 1:  # polib keeps the header separately
        lines.remove(header)
    if len(lines) != len(catalogue):
        raise DocumentError("is not a gettext catalogue: a message begins inside another's lines")
    messages = [
        _Message(where, tuple(_forms(entry, plurals)))
        for where, entry in zip(lines, catalogue, strict=True)
        if entry.msgid and not entry.obsolete
    ]

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        if not any(translations):
            return data
        style, newline = LineStyle.detect(encoded.text), "\r\n" if "\r\n" in encoded.text else "\n"
        remaining = iter(translations)
        replacements: list[Edit] = []
        for message in messages:
            by_form = [next(remaining) if form.unit("") else None for form in message.forms]
            replacements += _replacements(encoded.text, message, by_form, style, newline)
        if header and not header.has_context:
            replacements += _complete_header(encoded.text, header, options.target_language, style, newline)
        return encoded.replaced(replacements)

    units = (form.unit(message.lines.key) for message in messages for form in message.forms)
    return Document(tuple(unit for unit in units if unit), write)


def _decode(data: bytes, encoding: str) -> EncodedText:
    charset = _CHARSET.search(data[:10_000])
    known = charset and charset[1] != b"CHARSET"  # a template has "CHARSET"
    return decode_text(data, encoding or (charset[1].decode() if charset and known else ""))


def _forms(entry: polib.POEntry, plurals: PluralForms | None) -> Iterator[_Form]:
    message_format = MessageFormat.from_flags(entry.flags)
    if not entry.msgid_plural:
        yield _Form(None, entry.msgid, StringUnit(message_format.read(entry.msgid)), entry.msgstr, message_format)
        return
    count = plurals.nplurals if plurals else max(2, len(entry.msgstr_plural))
    singular = [i for i in range(count) if _is_singular(i, entry, plurals)]
    for i in range(count):
        source = entry.msgid if i in singular else entry.msgid_plural
        reasons = (_SAME_TEXT,) if i not in singular and count - len(singular) > 1 else ()
        unit = StringUnit(message_format.read(source))
        yield _Form(i, source, unit, entry.msgstr_plural.get(i, ""), message_format, reasons)


def _is_singular(form: int, entry: polib.POEntry, plurals: PluralForms | None) -> bool:
    """Return True if a form is used for the number 1.

    If it is also used for other numbers (21), the singular must contain the number.
    """
    if plurals is None:
        return form == 0
    numbers = plurals.numbers(form)
    placeholders, of_plural = (
        sorted(find_spans(text, ("placeholders",))) for text in (entry.msgid, entry.msgid_plural)
    )
    return numbers == [1] or (1 in numbers and plurals.nplurals > 1 and placeholders == of_plural)


def _replacements(
    text: str,
    message: _Message,
    translations: Sequence[UnitTranslation | None],
    style: LineStyle,
    newline: str,
) -> Iterator[Edit]:
    """Edit the lines of a message. Makes no edits if some form has no translation and does not get one."""
    strings = [form.text(new) for form, new in zip(message.forms, translations, strict=True)]
    if None in strings or all(form.existing for form in message.forms):
        return
    written = "".join(
        style.string_lines("msgstr" if form.number is None else f"msgstr[{form.number}]", string or "", newline)
        for form, string in zip(message.forms, strings, strict=True)
    )
    lines = message.lines
    ended = text[: lines.strings[1]].endswith("\n")
    yield Edit(*lines.strings, written if ended else written.removesuffix(newline))
    differs = any(
        form.format.differs(string or "", form.message)
        for form, string, new in zip(message.forms, strings, translations, strict=True)
        if new
    )
    if differs or any(translation.reasons for translation in translations if translation):
        start, end = lines.flags or (lines.start, lines.start)
        yield Edit(start, end, with_fuzzy(text[start:end], newline))


def _complete_header(text: str, header: MessageLines, language: str, style: LineStyle, newline: str) -> Iterator[Edit]:
    """Fill in the fields of the header that a template leaves open."""
    fields = read_string(text[slice(*header.strings)])
    complete = fields.replace("charset=CHARSET", "charset=UTF-8").replace("Encoding: ENCODING\n", "Encoding: 8bit\n")
    if language and not re.search(r"^Language:[ \t]*\w", complete, re.MULTILINE):
        complete = _with_field(complete, "Language", language.replace("-", "_"))
    plural_forms = re.search(r"^Plural-Forms:.*$", complete, re.MULTILINE)
    if (rule := plural_rule(language)) and not (plural_forms and parse_plural_forms(plural_forms.group())):
        complete = _with_field(complete, "Plural-Forms", rule)
    if complete != fields:
        yield Edit(*header.strings, style._replace(broken=True).string_lines("msgstr", complete, newline))


def _with_field(fields: str, name: str, value: str) -> str:
    pattern = re.compile(rf"^{name}:.*\n?", re.MULTILINE)
    line = f"{name}: {value}\n"
    return pattern.sub(lambda _: line, fields, count=1) if pattern.search(fields) else fields + line
