"""Text with XML tags of any vocabulary, as programs send it: a sentence with markup, or a whole document.

The text need not be a single element or well-formed: a tag without its partner ends a unit. Only translations replace
characters of the text; nothing else is rewritten.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape

from ...config.language_tags import is_foreign, primary_language
from .encoded_text import Edit, Slice, edited
from .html_format import INLINE, POINTS, text_pieces
from .html_tokens import Token, html_tokens
from .inline_runs import inline_runs
from .pieces import Piece, beside_text, opaque_point, tag_partners
from .unit import NO_RULES, Document, TagRules, UnitTranslation

_CDATA = "<![CDATA["
_LANGUAGE = re.compile(r"\sxml:lang\s*=\s*[\"']([\w-]+)")
_NAME = re.compile(r"</?([A-Za-z][^\s/>]*+)")


def read_xml_text(
    text: str, rules: TagRules = NO_RULES, *, keep_lines: bool = False, source_language: str = ""
) -> Document:
    """Find the units of a text with tags. Line breaks are read as blanks, unless `keep_lines` is set.

    Without a rule, a tag is part of a sentence if it touches text inside its parent element (`Press <x>Start</x> now`)
    or if HTML uses it within sentences (`<b>`). Any other tag is structure, where a unit ends. Comments, instructions
    and CDATA sections stay unchanged, and so does text that `xml:lang` marks as a language other than `source_language`
    and the language of the outermost element.
    """
    runs = list(inline_runs(_read(text, rules, source_language), collapse=not keep_lines))

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        edits = [
            Edit(run.pieces[0].source.start, run.pieces[-1].source.end,
                 "".join(_written(text, piece) for piece in run.translated(translation)))
            for run, translation in zip(runs, translations, strict=True)
            if translation and translation.changes(run.unit)
        ]  # fmt: skip
        return edited(text, Slice(0, len(text)), edits).encode()

    return Document(tuple(run.unit for run in runs), write)


def _written(text: str, piece: Piece) -> str:
    return escape(piece.text, quote=False) if piece.kind == "text" else text[piece.source.start : piece.source.end]


def _read(text: str, rules: TagRules, source_language: str) -> list[Piece]:
    tags = [piece for token in html_tokens(text, is_xml=True) for piece in _token_pieces(text, token)]
    partners = tag_partners(tags)
    in_sentences = beside_text(tags, partners)
    marked = {i: match[1] for i, tag in enumerate(tags) if tag.kind == "open" and (match := _mark(text, tag))}
    ends = [i for i, tag in enumerate(tags) if tag.kind != "text" or tag.text.strip()]
    outermost = marked.get(ends[0], "") if ends and partners.get(ends[0]) == ends[-1] else ""
    languages_read = {primary_language(source_language), primary_language(outermost)} - {""}
    pieces: list[Piece] = []
    index = 0
    while index < len(tags):
        tag, partner = tags[index], partners.get(index, index)
        is_tag = bool(tag.name)
        is_foreign_part = bool(languages_read) and is_foreign(marked.get(index, ""), languages_read)
        if is_tag and (tag.name in rules.ignored or is_foreign_part) and (tag.kind == "point" or partner > index):
            content = "".join(one.text for one in tags[index:partner])
            pieces.append(opaque_point(content, Slice(tag.source.start, tags[partner].source.end)))
            index = partner
        elif is_tag and tag.name in rules.splitting:
            pieces.append(Piece("boundary"))
        elif tag.kind not in ("open", "close") or tag.name in rules.non_splitting or not rules.outline:
            pieces.append(tag)
        else:
            is_markup = index in in_sentences or tag.name.lower() in INLINE
            pieces.append(tag if is_markup else Piece("boundary"))
        index += 1
    return pieces


def _mark(text: str, tag: Piece) -> re.Match[str] | None:
    return _LANGUAGE.search(text, tag.source.start, tag.source.end)


def _token_pieces(text: str, token: Token) -> Iterator[Piece]:
    span = Slice(token.start, token.end)
    if token.kind == "text":
        yield from text_pieces(text, token)
        return
    match = _NAME.match(text, token.start)
    name = match[1] if match else ""  # as written, because XML distinguishes capitals
    if token.kind == "end":
        yield Piece("close", name=name, source=span)
    elif token.kind == "start" and not text.startswith("/>", token.end - 2):
        yield Piece("open", name=name, source=span)
    elif token.kind == "start":
        yield Piece("point", name=name, source=span, stands_for=POINTS.get(token.name, "word"))
    elif text.startswith(_CDATA, token.start):
        yield opaque_point(text[token.start + len(_CDATA) : token.end].removesuffix("]]>"), span)
    else:
        yield Piece("point", source=span)
