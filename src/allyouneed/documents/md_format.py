"""Markdown: the text of paragraphs, headings, list items and table cells; all else stays, character by character.

Kept: front matter, code, HTML blocks, addresses and titles of links, reference definitions. A translated paragraph is
one line, but for its hard line breaks.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .encoded_text import decode_text
from .inline_runs import InlineRun, inline_runs
from .markdown_inline import LostPosition, inline_pieces, is_plain, make_parser
from .page_edits import Edit, Slice, edited
from .pieces import Piece, is_translatable
from .unit import Document, DocumentOptions, LeftOutText, TranslationUnit, UnitTranslation

# It begins with a key, a table or a comment, so that a rule and a paragraph are none.
_FRONT_MATTER = re.compile(
    r"(?:---|\+\+\+)[ \t]*\r?\n(?=[\"']?[\w.-]+[\"']?[ \t]*[:=]|\[|[ \t]*#)(?:.*\r?\n)*?"
    r"(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
# What would be markup: a backslash before a sign, emphasis at a word, code, brackets, tags, entities, strikethrough.
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])|(?<!\s)\*|\*(?!\s)|(?<!\w)_|_(?!\w)|[`\[\]]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<=~)~"
)
_BLOCK_START = re.compile(r"\s*(?:(?=[-+*](?:\s|\Z)|#{1,6}(?:\s|\Z)|>|=+\s*\Z|-+\s*\Z|~~~)|\d{1,9}(?=[.)](?:\s|\Z)))")
_TEXTS = frozenset({"text", "text_special", "softbreak"})

_UNREADABLE = "its markup could not be found again in the document"
_ALT_MARKUP = "an alternative text with markup is not translated"

AltText = Slice  # the alternative text of an image


def read_md_document(data: bytes, options: DocumentOptions) -> Document:
    """A Markdown text (CommonMark with tables and strikethrough). Refuses bytes that are not of its encoding."""
    encoded = decode_text(data, options.encoding)
    page = encoded.text
    blocks = list(_inline_blocks(page))
    items = [(block, item) for block in blocks for item in block.items(numbers=options.numbers)]
    left_out = (one for block in blocks for one in block.left_out(numbers=options.numbers))
    units = tuple(_unit(page, block, item) for block, item in items)

    def write(translations: Sequence[UnitTranslation | None]) -> bytes:
        changed = [
            (block, item, translation)
            for (block, item), unit, translation in zip(items, units, translations, strict=True)
            if translation and translation.changes(unit)
        ]
        edits = sorted(
            Edit(*item, _escaped(translation.text, block.is_cell))
            for block, item, translation in changed
            if isinstance(item, Slice)
        )
        texts = [
            edit
            for block, item, translation in changed
            if isinstance(item, InlineRun) and (edit := block.edit(item, translation, edits))
        ]
        whole = edited(page, Slice(0, len(page)), sorted([*texts, *edits]))
        return encoded._replace(text=whole).replaced([])

    def problem(number: int, translation: UnitTranslation) -> str:
        block, item = items[number]
        if isinstance(item, Slice) or not translation.changes(units[number]):
            return ""
        return "" if block.edit(item, translation, []) else "the translation would lose some of its markup"

    return Document(units, write, problem, tuple(left_out))


@dataclass(frozen=True, slots=True)
class InlineBlock:
    """The content of a paragraph, heading or cell: its lines, without what is before them, and where they stand.

    `starts` are those of the lines in the content, `positions` those in the page, or none if these are not known.
    """

    page: str
    parser: MarkdownIt
    references: dict[str, Any]
    content: str
    tokens: list[Token]
    starts: list[int]
    positions: list[int]
    line: int
    is_cell: bool

    def located(self, start: int, end: int) -> Slice:
        """Where a part of the content stands in the page."""

        def position(at: int) -> int:
            line = bisect_right(self.starts, at) - 1
            return self.positions[line] + at - self.starts[line]

        return Slice(position(start), position(end))

    def items(self, *, numbers: bool = False) -> list[InlineRun | AltText]:
        """The texts and the alternative texts of images, in their order; none where positions are lost."""
        pieces = self._pieces() or []
        images = [
            Slice(piece.source.start + 2, piece.source.start + 2 + len(piece.name))
            for piece in pieces
            if piece.kind == "point" and is_translatable(piece.name)
        ]
        items: list[InlineRun | AltText] = [*inline_runs(pieces, collapse=True, numbers=numbers), *images]
        return sorted(items, key=_start)

    def left_out(self, *, numbers: bool = False) -> Iterator[LeftOutText]:
        """The texts that are no items: all where positions are lost, and alternative texts with markup."""
        texts = [("".join(one.content for one in self.tokens if one.type == "text"), _UNREADABLE)]
        if self._pieces() is not None:
            alternatives = (one for one in self.tokens if one.type == "image")
            texts = [(one.content, _ALT_MARKUP) for one in alternatives if not is_plain(one)]
        for text, reason in texts:
            if is_translatable(text, numbers=numbers):
                yield LeftOutText(f"line {self.line}", text, reason)

    def _pieces(self) -> list[Piece] | None:
        try:
            return list(inline_pieces(self.parser, self.content, self.tokens, self.located)) if self.positions else None
        except LostPosition:
            return None

    def edit(self, run: InlineRun, translation: UnitTranslation, edits: Sequence[Edit]) -> Edit | None:
        """The edit that writes a translation; None if it would not have the markup of its source."""
        first, last = run.pieces[0].source.start, run.pieces[-1].source.end
        parts: list[str] = []
        for piece in run.translated(translation):
            if piece.kind != "text":
                parts.append(edited(self.page, piece.source, edits))
            elif piece.text:
                text = _escaped(re.sub(r"[\r\n]+", " ", piece.text), self.is_cell)
                begins_line = (
                    first == self.positions[0] if not parts else parts[-1].rstrip(" \t>").endswith(("\n", "\r"))
                )
                parts.append(_without_block_start(text) if begins_line else text)
        new = "".join(parts)
        whole = self.page[self.positions[0] : first] + new + self.page[last : self.located(0, len(self.content)).end]
        return Edit(first, last, new) if self._markup(whole) == self._markup(self.content) else None

    def _markup(self, content: str) -> Counter[str]:
        content = content.strip(" \t\r\n>")  # a line break at the end of a paragraph is no markup
        (inline,) = self.parser.parseInline(content, {"references": self.references})
        return Counter(
            f"{token.type} {token.markup} {token.attrs.get('href') or token.attrs.get('src')}"
            for token in inline.children or []
            if token.type not in _TEXTS
        )


def _inline_blocks(page: str) -> Iterator[InlineBlock]:
    front = _FRONT_MATTER.match(page)
    offset = front.end() if front else 0
    lines = [match for match in _LINE.finditer(page, offset) if match.group() or match.start() < len(page)]
    first_line = len(_LINE.findall(page[:offset])) - 1 if front else 0
    parser = make_parser()
    environment: dict[str, Any] = {}
    tokens = parser.parse(page[offset:], environment)
    after: dict[int, int] = {}  # where the next cell of a row is looked for
    for previous, token in zip([None, *tokens], tokens, strict=False):
        if token.type != "inline" or token.map is None or not token.content.strip():
            continue
        number = token.map[0]
        is_cell = previous is not None and previous.type in ("td_open", "th_open")
        contents = token.content.split("\n")
        rows = lines[number : number + len(contents)]
        if is_cell:
            cell = re.compile(re.escape(token.content).replace(r"\|", r"\\?\|"))
            match = cell.search(page, after.get(number, rows[0].start()), rows[0].end(1))
            after[number] = match.end() if match else rows[0].end(1)
            is_same = match is not None and match.group() == token.content  # \| is an escaped |
            positions = [match.start()] if match and is_same else []
        else:
            positions = [_content_start(row, content) for row, content in zip(rows, contents, strict=False)]
        if -1 in positions or len(positions) != len(contents):
            positions = []
        starts = [0]
        for content in contents[:-1]:
            starts.append(starts[-1] + len(content) + 1)
        references = environment.get("references", {})
        yield InlineBlock(
            page, parser, references, token.content, token.children or [], starts, positions, first_line + number + 1,
            is_cell,
        )  # fmt: skip


def _content_start(line: re.Match[str], content: str) -> int:
    """Where the content of a line begins after indents, markers and quotation signs; -1 if it is not there."""
    text = line[1]
    at = len(text.rstrip(" \t")) - len(content.rstrip(" \t"))
    if at < 0 or not text.startswith(content, at):
        at = text.rfind(content)  # a heading may be closed by signs
    return at if at == -1 else line.start() + at


def _start(item: InlineRun | AltText) -> int:
    start: int = item.start if isinstance(item, Slice) else item.pieces[0].source.start
    return start


def _unit(page: str, block: InlineBlock, item: InlineRun | AltText) -> TranslationUnit:
    if isinstance(item, Slice):
        return TranslationUnit(text=page[item.start : item.end], key=f"line {block.line}")
    return replace(item.unit, key=f"line {block.line}")


def _escaped(text: str, in_table: bool) -> str:
    text = _MARKUP.sub(lambda match: "\\" + match.group(), text)
    return text.replace("|", "\\|") if in_table else text


def _without_block_start(text: str) -> str:
    """The text of the beginning of a line, escaped if it would begin a list, a heading or a quotation."""
    match = _BLOCK_START.match(text)
    return f"{text[: match.end()]}\\{text[match.end() :]}" if match else text
