"""The inline content of one Markdown block: its texts, and the edits of the page that write their translations."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .encoded_text import Edit, Slice, edited
from .inline_runs import InlineRun, inline_runs
from .markdown_inline import LostPosition, Source, inline_pieces, token_sources, without_markers
from .pieces import Piece, is_translatable, tag_partners
from .unit import LeftOutText, UnitTranslation

# Text that would be markup: a backslash before a sign, emphasis at a word, code, brackets, tags, entities,
# strikethrough, formulas.
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])|(?<!\s)\*|\*(?!\s)|(?<!\w)_|_(?!\w)|[`\[\]$]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<=~)~"
)
_BLOCK_START = re.compile(r"\s*(?:(?=[-+*:~](?:\s|\Z)|#{1,6}(?:\s|\Z)|>|=+\s*\Z|-+\s*\Z|~~~)|\d{1,9}(?=[.)](?:\s|\Z)))")
_SIGNS = frozenset("*_[]`<~$")  # signs in `_MARKUP` that a text may contain without making markup
_TEXTS = frozenset(["text", "text_special", "softbreak"])
_PARAGRAPH = ["paragraph_open", "inline", "paragraph_close"]
BlockKind = Literal["paragraph", "line", "cell"]
_UNREADABLE = "its markup could not be found again in the document"


@dataclass(slots=True)
class InlineBlock:
    """The content of a paragraph, heading, cell or title or, at greater `depth`, of an image or note inside it.

    `positions` are the positions of its lines in the page; empty if they are unknown. `closing` is an edit of the text
    around the content, applied if the content changes. Elements are translated if their language is in
    `languages_read`. `pieces` is None if the positions of tokens are unknown.
    """

    page: str
    parser: MarkdownIt
    environment: dict[str, Any]
    content: str
    tokens: Sequence[Token]
    positions: Sequence[int]
    line: int
    kind: BlockKind
    depth: int = 0
    closing: tuple[Edit, ...] = ()
    languages_read: frozenset[str] = frozenset()
    starts: list[int] = field(init=False)
    sources: list[tuple[Token, Source]] = field(init=False)
    pieces: list[Piece] | None = field(init=False)

    def __post_init__(self) -> None:
        self.starts = [0, *accumulate(len(line) + 1 for line in self.content.split("\n")[:-1])]
        self.sources, self.pieces = [], None
        try:
            if self.positions:
                self.sources = list(token_sources(self.content, self.tokens))
                self.pieces = inline_pieces(self.content, self.sources, self.languages_read)
                for piece in self.pieces:
                    start, end = piece.source.start, piece.source.end
                    if piece.text == self.content[start:end] != self.page[slice(*self.located(start, end))]:
                        raise LostPosition
        except LostPosition:
            pass

    def located(self, start: int, end: int) -> Slice:
        """Return the position in the page of a part of the content."""

        def position(at: int) -> int:
            line = bisect_right(self.starts, at) - 1
            return self.positions[line] + at - self.starts[line]

        return Slice(position(start), position(end))

    def with_nested(self) -> Iterator["InlineBlock"]:
        """Yield this content, and the contents of images and notes inside it."""
        yield self
        for token, source in self.sources:
            start, closing = source.start + 2, self.closing  # after `![` or `^[`
            if token.type == "image":
                content = token.content
                if source.label:
                    closing = (self._in_page(self._named(source._replace(start=start + len(content)))),)
            elif token.type == "note" and token.content.startswith("^"):
                content = token.content[2:-1]
            else:
                continue
            tokens = token.children or self.parser.parseInline(content, self.environment)[0].children or []
            starts = [start + match.end() for match in re.finditer(r"^|\n", content)]
            positions = [self.located(at, at).start for at in starts]
            line = self.line + self.content.count("\n", 0, start)
            kind: BlockKind = "cell" if self.kind == "cell" else "line"
            inner = replace(
                self, content=content, tokens=tokens, positions=positions, line=line, kind=kind,
                depth=self.depth + 1, closing=closing,
            )  # fmt: skip
            yield from inner.with_nested()

    def runs(self, *, numbers: bool = False) -> Iterator[InlineRun]:
        """Find the texts; none if positions are unknown."""
        return inline_runs(self.pieces or [], collapse=True, numbers=numbers)

    def left_out(self, *, numbers: bool = False) -> Iterator[LeftOutText]:
        """Yield the whole text as left out, if its positions are unknown."""
        text = "".join(token.content for token in self.tokens if token.type == "text")
        if self.pieces is None and is_translatable(text, numbers=numbers):
            yield LeftOutText(f"line {self.line}", text, _UNREADABLE)

    def edits(self, run: InlineRun, translation: UnitTranslation, inner: Sequence[Edit]) -> list[Edit] | None:
        """Make the edits of the page that write a translation, or None if its markup would differ from the source's.

        `inner` are the edits inside the translated text.
        """
        first, last = content_span(run)
        around = list(self._named_around(run))
        signs = {sign for piece in run.pieces if piece.source.read(self.content) == piece.text for sign in piece.text}
        for kept in (_SIGNS & signs, frozenset[str]()):
            parts = self._parts(run, translation, kept)
            changes = [Edit(first, last, self._written(parts)), *around]
            if self._has_markup(edited(self.content, Slice(0, len(self.content)), changes)):
                texts = (
                    part if isinstance(part, str) else edited(self.page, self.located(part.start, part.end), inner)
                    for part in parts
                )
                new = Edit(*self.located(first, last), "".join(texts))
                return [new, *map(self._in_page, around), *self.closing]
        return None

    def _parts(self, run: InlineRun, translation: UnitTranslation, kept: Set[str]) -> list[str | Source]:
        """Cut a translation into parts to write: parts of the content, and texts. Signs in `kept` are not escaped."""
        parts: list[str | Source] = []
        opened: list[int] = []
        for piece in run.translated(translation):
            if piece.kind == "text":
                before = self._written(parts[-1:]) if parts else "\n" + self.content[: content_span(run).start]
                text = _escaped(re.sub(r"[\r\n]+", " ", piece.text), self.kind == "cell", kept)
                begins_line = "\n" in before and not before.rpartition("\n")[2].strip()
                parts += [_without_block_start(text) if begins_line else text] if text else []
                continue
            touches = self._written(parts[-1:]).endswith("`") and self.content.startswith("`", piece.source.start)
            parts += [" ", piece.source] if touches else [piece.source]  # otherwise two pieces of code would become one
            if piece.kind == "open":
                opened.append(len(parts))
            elif piece.kind == "close":
                text, label = self._written(parts[opened.pop() : -1]), piece.source.label
                if label and text != label:
                    parts[-1] = self._named(piece.source).content
        return parts

    def _written(self, parts: Iterable[str | Source]) -> str:
        return "".join(part if isinstance(part, str) else part.read(self.content) for part in parts)

    def _named(self, closing: Source) -> Edit:
        """Rewrite the end of a link that was named by its text, which has changed: `]` becomes `][name]`."""
        closed = re.sub(r"^\](?:\[\])?", lambda _: f"][{closing.label}]", closing.read(self.content))
        return Edit(closing.start, closing.end, closed)

    def _named_around(self, run: InlineRun) -> Iterator[Edit]:
        """Rewrite the end of the link that contains the run, as `_named` does."""
        pieces = self.pieces or []
        if any(piece.source.label for piece in pieces):
            for close, opening in tag_partners(pieces).items():
                if (
                    pieces[close].kind == "close"
                    and opening < run.start
                    and run.end <= close
                    and pieces[close].source.label
                ):
                    yield self._named(pieces[close].source)

    def _in_page(self, edit: Edit) -> Edit:
        return Edit(*self.located(edit.start, edit.end), edit.content)

    def _has_markup(self, content: str) -> bool:
        """Return True if the new content has the same markup as the old, and a paragraph is still a paragraph."""
        tokens = self._parsed(content)
        if [token.type for token in tokens] != _PARAGRAPH:
            if self.kind == "paragraph" and [token.type for token in self._parsed(self.content)] == _PARAGRAPH:
                return False
            tokens = self.parser.parseInline(content, self._references())
        (inline,) = (token for token in tokens if token.type == "inline")
        return _markup(inline.children or []) == _markup(self.tokens)

    def _parsed(self, content: str) -> list[Token]:
        return self.parser.parse(without_markers(content), self._references())

    def _references(self) -> dict[str, Any]:
        return {"references": {**self.environment.get("references", {})}}


def content_span(run: InlineRun) -> Slice:
    """Return the position of a run in the content of its block."""
    return Slice(run.pieces[0].source.start, run.pieces[-1].source.end)


def _markup(tokens: Iterable[Token]) -> Counter[tuple[str, ...]]:
    """Count the tokens that are not text, each together with the tokens around it."""
    markup = Counter[tuple[str, ...]]()
    around: list[str] = []
    for token in tokens:
        if token.nesting < 0:
            around.pop()
        if token.type not in _TEXTS:
            content = "" if token.type == "image" else token.content
            address = token.attrs.get("href") or token.attrs.get("src")
            markup[token.type, token.markup, content, str(address), *around] += 1
        if token.nesting > 0:
            around.append(token.type)
    return markup


def _escaped(text: str, is_cell: bool, kept: Set[str]) -> str:
    text = _MARKUP.sub(lambda match: match.group() if match.group() in kept else "\\" + match.group(), text)
    return text.replace("|", "\\|") if is_cell else text


def _without_block_start(text: str) -> str:
    """Escape the beginning of a line that would otherwise begin a list, a heading or a quotation."""
    match = _BLOCK_START.match(text)
    return f"{text[: match.end()]}\\{text[match.end() :]}" if match else text
