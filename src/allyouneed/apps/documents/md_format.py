"""Markdown: translate the text of paragraphs, headings, list items and table cells.

Everything else stays unchanged, character by character: front matter except `lang` and `dir`, code, HTML blocks, marker
lines, addresses and titles of links, and reference definitions. Links to headings of the page follow translated
headings. A translated paragraph is one line, except for hard breaks.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ...config.language_tags import is_right_to_left, primary_language
from .encoded_text import Edit, Slice, decode_text, edited
from .inline_runs import InlineRun
from .markdown_anchors import OTHER_DOCUMENT, find_anchors, find_headings, moved_anchors
from .markdown_block import BlockKind, InlineBlock, content_span
from .markdown_inline import FRONT_MATTER, IS_MARKER, make_parser, marker_title, without_markers
from .unit import Document, DocumentOptions, UnitTranslation

_LANGUAGE = re.compile(r"(?m)^(lang(?:uage)?|dir)[ \t]*[:=][ \t]*([\"']?)([\w-]+)\2[ \t\r]*$")
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


def read_md_document(data: bytes, options: DocumentOptions) -> Document:
    """Read a Markdown text: CommonMark and many common extensions. Refuses bytes that are invalid in its encoding."""
    encoded = decode_text(data, options.encoding)
    page = encoded.text
    parsed = _parse(page)
    languages_read = frozenset({primary_language(options.source_language)} - {""})
    blocks = [inner for block in _inline_blocks(page, parsed, languages_read) for inner in block.with_nested()]
    anchors = list(find_anchors(page, _places_of_links(parsed, blocks)))
    items = sorted(
        ((block, run) for block in blocks for run in block.runs(numbers=options.numbers)),
        key=lambda item: item[0].located(*content_span(item[1])).start,
    )
    units = tuple(
        replace(run.unit, key=f"line {block.line}", reasons=(*run.unit.reasons, *_links_elsewhere(block, run)))
        for block, run in items
    )

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        changed = [
            (block, run, translation)
            for (block, run), unit, translation in zip(items, units, translations, strict=True)
            if translation and translation.changes(unit)
        ]

        def edits_around(edits: list[Edit]) -> list[Edit]:
            for _, group in groupby(sorted(changed, key=_inside_first), key=_inside_first):
                new = [edit for block, run, translation in group for edit in block.edits(run, translation, edits) or ()]
                edits = sorted({*edits, *new})
            return edits

        edits = edits_around([])
        if edits and options.target_language:
            edits = sorted([*edits, *_language_edits(page, options.target_language)])
        if anchors and edits:
            new_page = edited(page, Slice(0, len(page)), edits)
            headings, new_headings = (find_headings(tokens) for tokens in (parsed.tokens, _parse(new_page).tokens))
            edits = edits_around(sorted(moved_anchors(page, anchors, headings, new_headings)))
        return encoded.replaced(edits)

    def problem(number: int, translation: UnitTranslation) -> str:
        block, run = items[number]
        if not translation.changes(units[number]) or block.edits(run, translation, []):
            return ""
        return "the translation would lose some of its markup"

    left_out = (one for block in blocks for one in block.left_out(numbers=options.numbers))
    return Document(units, write, problem, tuple(left_out))


def _language_edits(page: str, target: str) -> Iterator[Edit]:
    """Edit the language in a page's front matter, for a translation."""
    front = FRONT_MATTER.match(re.sub("\r\n?", lambda match: "\n".rjust(len(match[0])), page))
    for match in _LANGUAGE.finditer(page, 0, front.end() if front else 0):
        yield Edit(*match.span(3), ("rtl" if is_right_to_left(target) else "ltr") if match[1] == "dir" else target)


def _inside_first(item: tuple[InlineBlock, object, object]) -> int:
    return -item[0].depth


class ParsedPage(NamedTuple):
    """The lines of a page, the text that the parser reads, and the parser's result."""

    rows: list[re.Match[str]]
    text: str
    parser: MarkdownIt
    environment: dict[str, Any]
    tokens: list[Token]


def _parse(page: str) -> ParsedPage:
    rows = list(_LINE.finditer(page))
    text = without_markers("\n".join(row[1] for row in rows))
    parser = make_parser()
    environment: dict[str, Any] = {}
    return ParsedPage(rows, text, parser, environment, parser.parse(text, environment))


def _places_of_links(parsed: ParsedPage, blocks: Iterable[InlineBlock]) -> Iterator[Slice]:
    """Find where links have their addresses: at their ends, in tags, in HTML blocks and in definitions."""
    for block in blocks:
        for token, source in block.sources if block.pieces is not None else ():
            if token.type in ("link_close", "html_inline"):
                yield block.located(source.start, source.end)
    maps = [token.map for token in parsed.tokens if token.type == "html_block" and token.map]
    maps += [one["map"] for one in parsed.environment.get("references", {}).values()]
    for first, end in maps:
        yield Slice(parsed.rows[first].start(), parsed.rows[end - 1].end())


def _links_elsewhere(block: InlineBlock, run: InlineRun) -> Iterator[str]:
    for piece in run.pieces:
        for match in OTHER_DOCUMENT.finditer(piece.source.read(block.content)) if piece.kind == "close" else ():
            yield f"its link {match[1]} leads to a heading of another document, which a translation would rename"


def _inline_blocks(page: str, parsed: ParsedPage, languages_read: frozenset[str]) -> Iterator[InlineBlock]:
    rows, text, parser, environment, tokens = parsed
    lines = text.split("\n")
    after: dict[int, int] = {}  # where to look for the next cell of a row
    for previous, token in pairwise([None, *tokens]):
        if token is None or token.map is None:
            continue
        number, content, children, kind = token.map[0], token.content, token.children, _kind(previous)
        if token.type == "admonition_open" or IS_MARKER.fullmatch(content):
            title = marker_title(rows[number][1]) or Slice(0, 0)
            content, children, columns, kind = rows[number][1][slice(*title)], None, [title.start], "line"
        elif token.type != "inline" or (previous and previous.type == "admonition_title_open"):
            continue
        elif kind == "cell":
            cell = re.compile(re.escape(content).replace(r"\|", r"\\?\|"))
            match = cell.search(lines[number], after.get(number, 0))
            after[number] = match.end() if match else len(lines[number])
            columns = [match.start() if match else -1]
            if match and match.group() != content:  # \\| is an escaped |
                content, children = match.group(), None
        else:
            columns = [_column(*pair) for pair in zip(lines[number:], content.split("\n"), strict=False)]
        if content.strip():
            tokens_inside = children or parser.parseInline(content, environment)[0].children or []
            starts = [rows[number + index].start() + column for index, column in enumerate(columns)]
            positions = [] if -1 in columns else starts
            line = number + 1
            yield InlineBlock(
                page, parser, environment, content, tokens_inside, positions, line, kind, languages_read=languages_read
            )


def _kind(opening: Token | None) -> BlockKind:
    if opening and opening.type in ("td_open", "th_open"):
        return "cell"
    return "line" if opening and opening.type == "heading_open" and opening.markup.startswith("#") else "paragraph"


def _column(line: str, content: str) -> int:
    """Return where the content begins in a line, after indents, markers and quotation signs; -1 if it is not there."""
    at = len(line.rstrip(" \t")) - len(content.rstrip(" \t"))
    return at if at >= 0 and line.startswith(content, at) else line.rfind(content)  # signs may also follow a heading
