"""gettext catalogues (.po, .pot). `po_catalogue` reads the messages; `po_lines` knows where their translations stand.

Only the `msgstr` of messages that get a translation are rewritten, and the flags of those to look at. Everything
else keeps its bytes: comments, the order and wrapping of lines, what is translated, fuzzy or obsolete.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polib

from ...errors import DocumentError
from ...po_catalogue import read_catalogue
from ...text.spans import find_spans
from .encoded_text import EncodedText, Replacement, decode_text
from .plurals import PluralForms, parse_plural_forms, plural_rule
from .po_lines import LineStyle, MessageLines, find_messages, read_string, with_fuzzy
from .string_unit import StringUnit, is_same_in_all_languages
from .unit import Document, DocumentOptions, TranslationUnit, UnitTranslation

_CHARSET = re.compile(rb"charset=([\w.:-]+)")
_SAME_TEXT = "one of several plural forms that got the translation of the same text"


class _Form(NamedTuple):
    """One translation of a message: its plural form, if it has several, its source, and what stands there already."""

    number: int | None
    source: StringUnit
    existing: str
    reasons: tuple[str, ...] = ()

    def unit(self, key: str) -> TranslationUnit | None:
        """None if there is nothing to translate."""
        if self.existing:
            return TranslationUnit(text=self.source.string, key=key, translation=self.existing)
        return self.source.unit(key, self.reasons) if self.source.has_words else None

    def text(self, translation: UnitTranslation | None) -> str | None:
        """What is to stand there; None if that is not known."""
        string = self.source.string
        if self.existing or not self.source.has_words:
            return self.existing or (string if is_same_in_all_languages(string) else None)
        return None if translation is None else self.source.translated(translation)


class _Message(NamedTuple):
    lines: MessageLines
    forms: tuple[_Form, ...]


def read_po_document(data: bytes, options: DocumentOptions) -> Document:
    """The messages of a catalogue; each plural form of the target language is a unit.

    The singular is the source of the form for the number 1, the plural that of the others. A header without a charset,
    language or plural forms gets them, as far as the target language is known. Refuses a catalogue that does not follow
    the format, by its line.
    """
    encoded = _decode(data, options.encoding)
    catalogue = _parse(encoded.text)
    rule = plural_rule(options.target_language or catalogue.metadata.get("Language", ""))
    plurals = parse_plural_forms(catalogue.metadata.get("Plural-Forms", "")) or parse_plural_forms(rule or "")
    lines = find_messages(encoded.text)
    header = next((where for where in lines if not where.has_id), None)
    if header and len(lines) == len(catalogue) + 1:  # polib keeps it apart
        lines.remove(header)
    if len(lines) != len(catalogue):
        raise DocumentError("is no gettext catalogue: a message begins inside another's lines")
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
        replacements: list[Replacement] = []
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
    known = charset and charset[1] != b"CHARSET"  # as a template has it
    return decode_text(data, encoding or (charset[1].decode() if charset and known else ""))


def _parse(text: str) -> polib.POFile:
    try:
        return read_catalogue(text)
    except ValueError as error:
        raise DocumentError(f"is no gettext catalogue: {error}") from error


def _forms(entry: polib.POEntry, plurals: PluralForms | None) -> Iterator[_Form]:
    if not entry.msgid_plural:
        yield _Form(None, StringUnit(entry.msgid), entry.msgstr)
        return
    count = plurals.nplurals if plurals else max(2, len(entry.msgstr_plural))
    singular = [i for i in range(count) if _is_singular(i, entry, plurals)]
    for i in range(count):
        source = entry.msgid if i in singular else entry.msgid_plural
        reasons = (_SAME_TEXT,) if i not in singular and count - len(singular) > 1 else ()
        yield _Form(i, StringUnit(source), entry.msgstr_plural.get(i, ""), reasons)


def _is_singular(form: int, entry: polib.POEntry, plurals: PluralForms | None) -> bool:
    """Whether a form is for 1. Where it is for other numbers too (21), the singular must not leave out the number."""
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
) -> Iterator[Replacement]:
    """What changes in the lines of a message: nothing if a form has neither a translation nor gets one."""
    strings = [form.text(new) for form, new in zip(message.forms, translations, strict=True)]
    if None in strings or all(form.existing for form in message.forms):
        return
    written = "".join(
        style.string_lines("msgstr" if form.number is None else f"msgstr[{form.number}]", string or "", newline)
        for form, string in zip(message.forms, strings, strict=True)
    )
    lines = message.lines
    ended = text[: lines.strings[1]].endswith("\n")
    yield *lines.strings, written if ended else written.removesuffix(newline)
    if any(translation.reasons for translation in translations if translation):
        start, end = lines.flags or (lines.start, lines.start)
        yield start, end, with_fuzzy(text[start:end], newline)


def _complete_header(
    text: str, header: MessageLines, language: str, style: LineStyle, newline: str
) -> Iterator[Replacement]:
    """The header with the fields that a template leaves open."""
    fields = read_string(text[slice(*header.strings)])
    complete = fields.replace("charset=CHARSET", "charset=UTF-8").replace("Encoding: ENCODING\n", "Encoding: 8bit\n")
    if language and not re.search(r"^Language:[ \t]*\w", complete, re.MULTILINE):
        complete = _with_field(complete, "Language", language.replace("-", "_"))
    plural_forms = re.search(r"^Plural-Forms:.*$", complete, re.MULTILINE)
    if (rule := plural_rule(language)) and not (plural_forms and parse_plural_forms(plural_forms.group())):
        complete = _with_field(complete, "Plural-Forms", rule)
    if complete != fields:
        yield *header.strings, style._replace(broken=True).string_lines("msgstr", complete, newline)


def _with_field(fields: str, name: str, value: str) -> str:
    pattern = re.compile(rf"^{name}:.*\n?", re.MULTILINE)
    line = f"{name}: {value}\n"
    return pattern.sub(lambda _: line, fields, count=1) if pattern.search(fields) else fields + line
