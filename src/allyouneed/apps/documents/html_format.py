"""HTML pages: translate the text of paragraphs, headings, cells and so on, and some attributes.

Everything else stays unchanged, byte for byte, because translations replace characters of the page; the page is not
parsed into a tree and written again.
"""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape, unescape
from itertools import accumulate, chain

from ...config.language_tags import is_foreign, is_right_to_left
from ...errors import DocumentError
from .encoded_text import Edit, Slice, edited
from .html_elements import VOID, find_elements, own_languages
from .html_tokens import Attribute, Token, html_tokens, is_empty_tag, tag_attributes
from .inline_runs import InlineRun, inline_runs
from .pieces import (
    BLANK_PARTS,
    LONE_SURROGATE,
    Piece,
    StandsFor,
    beside_text,
    find_notes,
    is_translatable,
    opaque_point,
    tag_partners,
)  # fmt: skip
from .unit import Document, DocumentOptions, LeftOutText, TagRules, TranslationUnit, UnitTranslation

INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins",
    "mark", "nobr", "q", "ruby", "rb", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt",
    "u",
})  # fmt: skip
POINTS: dict[str, StandsFor] = {"br": "break", "img": "word", "input": "word", "wbr": "", "embed": "word"}
# Code, formulas and drawings in a sentence; elements that a browser shows in place of text; blocks of code.
KEPT_INLINE = frozenset(["code", "kbd", "samp", "var", "svg", "math", "canvas", "object", "audio", "video"])
KEPT_BLOCKS = frozenset(["pre", "textarea", "listing", "template"])
_OWN_DIRECTION = frozenset(["bdo", "bdi", "input", "textarea"])  # they do not follow the language around them
_READINGS = frozenset(["rt", "rp"])  # the reading of a word in ruby, and its parentheses
_NOT_OF_HTML = re.compile("[-:]")  # in a name, marks an element of a program or of the page's author
ATTRIBUTES = frozenset(["alt", "title", "placeholder", "aria-label", "aria-description"])
_BUTTONS = frozenset(["submit", "button", "reset"])
_META = frozenset(["description", "og:title", "og:description", "twitter:title", "twitter:description"])
_CHARSET = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# Browsers use these instead of an encoding that a page names: https://encoding.spec.whatwg.org/#names-and-labels.
_WIDER_ENCODINGS = {
    name: wider
    for wider, names in {
        "cp1252": "ascii us-ascii iso-8859-1 iso8859-1 latin1 latin-1 l1",
        "cp1254": "iso-8859-9 iso8859-9 latin5 latin-5 l5",
        "cp932": "shift-jis sjis x-sjis ms-kanji windows-31j",
        "cp949": "euc-kr korean ks-c-5601-1987 ksc5601",
        "gb18030": "gb2312 gb-2312-80 gbk x-gbk chinese",
    }.items()
    for name in names.split()
}
_WRONG_BYTES = "has bytes that are not of the encoding of the page"


def read_html_document(data: bytes, options: DocumentOptions) -> Document:
    """Read a page. Refuses a page whose encoding is unknown or is not the one that the page names.

    Scripts, styles, code, `pre`, `textarea`, elements with translate="no" or the class notranslate, and text marked as
    another language are not translated. With a target language, `lang` and `dir` of translated elements are changed.
    """
    page, encoding = decode_page(data, options.encoding)
    texts, attributes, languages = _read(page, options)
    runs = [[*inline_runs(pieces, collapse=True, numbers=options.numbers)] for pieces in texts]
    inner = {id(run) for some in runs[1:] for run in some}  # readings, which are inside other runs
    items: list[InlineRun | Attribute] = [*chain.from_iterable(runs), *attributes]
    items.sort(key=_position)
    line_starts = [0, *(match.end() for match in re.finditer("\n", page))]
    units = tuple(_unit(item, bisect_right(line_starts, _position(item).start)) for item in items)

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        changed = [
            (item, translation)
            for item, unit, translation in zip(items, units, translations, strict=True)
            if translation and translation.changes(unit)
        ]
        new_values = [(item, one.text) for item, one in changed if isinstance(item, Attribute)]
        if options.target_language and any(translations):
            new_values += languages
        edits = sorted(Edit(item.start, item.end, f'"{escape(text)}"') for item, text in new_values)
        if options.target_language and any(translations):
            edits = sorted([*edits, *_added_direction(page, options.target_language)])

        def written(piece: Piece) -> str:
            if piece.kind == "text":
                return escape(piece.text, quote=False).replace("\xa0", "&#160;" if is_xhtml(page) else "&nbsp;")
            return edited(page, piece.source, edits)

        for is_inner in (True, False):
            edits = sorted(edits + [
                Edit(*_position(item), "".join(written(piece) for piece in item.translated(translation)))
                for item, translation in changed
                if isinstance(item, InlineRun) and (id(item) in inner) == is_inner
            ])  # fmt: skip
        return encode_page(edited(page, Slice(0, len(page)), edits), encoding)

    left_out = (
        LeftOutText(f"line {bisect_right(line_starts, piece.source.start)}", text, _WRONG_BYTES)
        for piece in chain.from_iterable(texts)
        if piece.kind == "text" and (text := LONE_SURROGATE.sub("\ufffd", piece.text)) != piece.text
        if is_translatable(text, numbers=options.numbers)
    )
    return Document(units, write, left_out=tuple(left_out))


def is_xhtml(page: str) -> bool:
    """Return True if a page is XML, judging by its first characters or its namespace."""
    return page.lstrip("\ufeff \t\r\n").startswith("<?xml") or "http://www.w3.org/1999/xhtml" in page[:2_048]


def decode_page(data: bytes, encoding: str = "") -> tuple[str, str]:
    """Decode a page: by its byte order mark, `encoding` or its declaration, or else as UTF-8.

    Also returns the encoding.
    """
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    encoding, is_given = next((name for mark, name in marks.items() if data.startswith(mark)), encoding), True
    if not encoding:
        is_given = False
        declared = _CHARSET.search(data[:2048])
        encoding = declared[1].decode() if declared else "utf-8"
    for name in dict.fromkeys([_WIDER_ENCODINGS.get(encoding.lower().replace("_", "-"), encoding), encoding]):
        try:
            page = data.decode(name, "surrogateescape")
            is_lossless = page.encode(name, "surrogateescape") == data
        except LookupError:
            says = "cannot be read as" if is_given else "names the encoding"
            raise DocumentError(f"{says} {name!r}, which is not a known encoding; convert it to UTF-8") from None
        except UnicodeError as error:
            says = "" if is_given else ", as it says it is"
            raise DocumentError(f"is not text in {name}{says}; convert it to UTF-8") from error
        if "\0" in page:
            line = page.count("\n", 0, page.index("\0")) + 1
            raise DocumentError(
                f"has a zero byte, at line {line}: it is in another encoding, or no page; convert it to UTF-8"
            )
        if is_lossless:
            return page, name
    raise DocumentError(f"is not text in {encoding}; convert it to UTF-8")


def encode_page(page: str, encoding: str) -> bytes:
    """Encode a page. Characters that the encoding lacks become character references."""
    try:
        return page.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return b"".join(
            character.encode(encoding, "surrogateescape" if LONE_SURROGATE.match(character) else "xmlcharrefreplace")
            for character in page
        )


def _read(
    page: str, options: DocumentOptions
) -> tuple[list[list[Piece]], list[Attribute], list[tuple[Attribute, str]]]:
    """Read the texts of a page as pieces, its attributes to translate, and new values for its language attributes.

    A reading (`<rt>`) is a text of its own, and a point (untranslated content) in the text around it.
    """
    pieces: list[Piece] = []
    readings: list[list[Piece]] = []
    # Where the pieces of each reading begin, and the token after which the reading ends.
    open_readings: list[tuple[int, int]] = []
    attributes: list[Attribute] = []
    languages: list[tuple[Attribute, str]] = []
    rules = options.tags.for_html()
    tokens = list(html_tokens(page, is_xhtml=is_xhtml(page)))
    elements = find_elements(page, tokens)
    languages_read = own_languages(tokens, elements, options.source_language, options.target_language)
    foreign = [is_foreign(language, languages_read) for language in elements.languages]
    foreign_before = [0, *accumulate(foreign)]
    direction = "rtl" if any(map(is_right_to_left, languages_read)) else "ltr"
    index = 0
    while index < len(tokens) or open_readings:
        if open_readings and index >= open_readings[-1][1]:
            start, end = open_readings.pop()
            span = Slice(pieces[start].source.start, tokens[end - 1].end)
            readings.append(pieces[start + 1 :])
            pieces[start:] = [Piece("point", source=span)]
            continue
        token, number = tokens[index], index
        index += 1
        values = tag_attributes(page, token) if token.kind == "start" else {}
        end = max(index, elements.ends[number])
        is_all_foreign = foreign[number] and foreign_before[end] - foreign_before[number] == end - number
        if token.kind == "start" and (is_all_foreign or _is_kept(token, values, rules)):
            first, index = index, end
            span = Slice(token.start, tokens[index - 1].end)
            is_inline = token.name in INLINE | KEPT_INLINE | rules.ignored
            content = "".join(unescape(page[one.start : one.end]) for one in tokens[first:index] if one.kind == "text")
            pieces.append(opaque_point(content, span) if is_inline else Piece("boundary"))
        elif foreign[number]:  # text of another language inside the page's own text
            pieces.append(Piece("boundary"))
        elif token.kind == "text":
            pieces += text_pieces(page, token)
        else:
            pieces.append(_tag_piece(page, token, rules))
            if token.kind == "start" and token.name in _READINGS:
                open_readings.append((len(pieces) - 1, end))
                pieces[-1] = Piece("point", source=Slice(token.start, token.end))
            attributes += _translatable(token, values)
            languages += _languages(token, values, direction, options.target_language)
    return [_without_structure(one) for one in (pieces, *readings)], attributes, languages


def _languages(
    token: Token, values: Mapping[str, Attribute], direction: str, target: str
) -> Iterator[tuple[Attribute, str]]:
    """Yield the attributes for language and direction of a translated element, with their new values."""
    yield from ((values[name], target) for name in ("lang", "xml:lang") if name in values)
    if token.name == "meta" and _value(values, "http-equiv").lower() == "content-language" and "content" in values:
        yield values["content"], target
    if token.name not in _OWN_DIRECTION and _value(values, "dir").lower() == direction != _direction(target):
        yield values["dir"], _direction(target)


def _direction(language: str) -> str:
    return "rtl" if is_right_to_left(language) else "ltr"


def _added_direction(page: str, target: str) -> Iterator[Edit]:
    """Set the direction of a page that names none, if its translation is written from right to left."""
    root = re.search(r"<html(?=[\s>])", page, re.IGNORECASE)
    if root and is_right_to_left(target):
        token = next(html_tokens(page[root.start() :]))
        if "dir" not in tag_attributes(page[root.start() :], token):
            yield Edit(root.end(), root.end(), ' dir="rtl"')


def _without_structure(pieces: list[Piece]) -> list[Piece]:
    """Replace elements unknown to HTML with boundaries between units, unless they touch text.

    An empty element in a sentence, such as an icon, becomes a point (untranslated content), and so does a note's mark.
    """
    partners = tag_partners(pieces)
    in_sentences = beside_text(pieces, partners)
    notes = find_notes(pieces, partners)
    result: list[Piece] = []
    end = -1  # of the current note
    for index, piece in enumerate(pieces):
        if index in notes:
            end = notes[index]
            result.append(Piece("point", source=Slice(piece.source.start, pieces[end].source.end)))
        elif index <= end:
            continue
        elif not _NOT_OF_HTML.search(piece.name):
            result.append(piece)
        elif index not in in_sentences:
            result.append(Piece("boundary"))
        elif partners.get(index) == index + 1:
            span = Slice(piece.source.start, pieces[index + 1].source.end)
            result.append(Piece("point", source=span, stands_for="word"))
        elif partners.get(index) != index - 1:
            result.append(piece)
    return result


def text_pieces(page: str, token: Token) -> Iterator[Piece]:
    """Yield the text of a token, with blanks at its ends as separate pieces, and references as characters."""
    for match in BLANK_PARTS.finditer(page, token.start, token.end):
        yield Piece("text", unescape(match.group()), source=Slice(*match.span()))


def _tag_piece(page: str, token: Token, rules: TagRules) -> Piece:
    span = Slice(token.start, token.end)
    if token.kind == "comment" and page.startswith("<!--", token.start):
        return Piece("point", source=span)
    if token.name in rules.splitting:
        return Piece("boundary")
    if token.name in POINTS:
        return Piece("point", source=span, stands_for=POINTS[token.name])
    is_known = token.name in INLINE | rules.non_splitting
    if not is_known and (token.kind == "comment" or not _NOT_OF_HTML.search(token.name)):
        return Piece("boundary")
    if token.kind == "end":
        return Piece("close", name=token.name, source=span)
    if is_empty_tag(page, token):
        return Piece("point", source=span, stands_for="" if is_known else "word")
    return Piece("open", name=token.name, source=span)


def _is_kept(token: Token, values: Mapping[str, Attribute], rules: TagRules) -> bool:
    """Return True if the content of an element must not be translated."""
    if token.kind == "end" or token.name in VOID:
        return False
    return token.name in KEPT_INLINE | KEPT_BLOCKS | rules.ignored or _says_no(values)


def _value(values: Mapping[str, Attribute], name: str) -> str:
    return values[name].value if name in values else ""


def _says_no(values: Mapping[str, Attribute]) -> bool:
    return _value(values, "translate").lower() == "no" or "notranslate" in _value(values, "class").split()


def _translatable(token: Token, values: Mapping[str, Attribute]) -> Iterator[Attribute]:
    """Yield the attributes of a tag that people read or hear."""
    if _says_no(values):
        return
    is_button = token.name == "input" and _value(values, "type").lower() in _BUTTONS
    described = _value(values, "name" if "name" in values else "property").lower()
    for name, attribute in values.items():
        is_read = (
            name in ATTRIBUTES
            or (name == "value" and is_button)
            or (name == "content" and token.name == "meta" and described in _META)
        )
        if is_read and is_translatable(attribute.value):
            yield attribute


def _position(item: InlineRun | Attribute) -> Slice:
    if isinstance(item, Attribute):
        return Slice(item.start, item.end)
    return Slice(item.pieces[0].source.start, item.pieces[-1].source.end)


def _unit(item: InlineRun | Attribute, line: int) -> TranslationUnit:
    if isinstance(item, Attribute):
        return TranslationUnit(text=item.value, key=f"line {line}")
    return replace(item.unit, key=f"line {line}")
