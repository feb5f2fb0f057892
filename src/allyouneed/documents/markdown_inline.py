"""The inline content of a Markdown paragraph as pieces with their positions, which markdown-it does not say.

markdown-it says which tokens there are, in their order; each one's source is looked up from where the one before
ended. Whatever is not where it should be makes the whole paragraph one that is left as it is.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .page_edits import Slice
from .pieces import BLANK_PARTS, Piece, opaque_point

_TASK = re.compile(r"\[[ xX]\][ \t]")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:?")
_SOFT_BREAK = re.compile(r"[ \t]*\n[ \t]*")
_HARD_BREAK = re.compile(r"(?:\\|[ \t]+)\n[ \t]*")
_HTML_NAME = re.compile(r"<(/?)([A-Za-z][\w-]*)")
_LABEL = re.compile(r"\[(?:[^\[\]\\]|\\.)*\]")


class LostPosition(Exception):  # noqa: N818  no failure of the program: the paragraph is left as it is
    """The source of a token is not where it should be."""


def make_parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough. Escapes and entities are tokens of their own."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")


def is_plain(image: Token) -> bool:
    """Whether the alternative text of an image is text alone."""
    return all(child.type == "text" for child in image.children or [])


def inline_pieces(
    parser: MarkdownIt, content: str, tokens: Sequence[Token], located: Callable[[int, int], Slice]
) -> Iterator[Piece]:
    """The pieces of `content`, whose `tokens` are these; `located` says where a part of it stands in the document.

    The alternative text of an image is its `text`. Raises `LostPosition`.
    """
    position = 0
    if match := _TASK.match(content):
        yield Piece("boundary", source=located(*match.span()))
    tokens = list(tokens)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.markup == "autolink":
            end = content.find(">", position) + 1
            yield opaque_point(tokens[index].content, located(position, end))
            index, position = index + 2, end
            continue
        end = _end(parser, content, token, position)
        yield from _token_pieces(content, token, position, end, located)
        position = end
    if content[position:].strip():
        raise LostPosition


def _token_pieces(
    content: str, token: Token, start: int, end: int, located: Callable[[int, int], Slice]
) -> Iterator[Piece]:
    source = located(start, end)
    match token.type:
        case "text":
            task = _TASK.match(content) if start == 0 else None
            yield from _text_pieces(content, task.end() if task else start, end, located)
        case "text_special":
            yield Piece("text", token.content, source=source)
        case "softbreak":
            yield Piece("text", " ", source=source)
        case "hardbreak":
            yield Piece("point", source=source, stands_for="break")
        case "code_inline":
            yield opaque_point(token.content, source)
        case "image":
            yield Piece("point", source=source, stands_for="word", name=token.content if is_plain(token) else "")
        case "html_inline":
            yield _html_piece(token.content, source)
        case _:
            name, _, side = token.type.rpartition("_")
            yield Piece("open" if side == "open" else "close", name=name, source=source)


def _text_pieces(content: str, start: int, end: int, located: Callable[[int, int], Slice]) -> Iterator[Piece]:
    for match in _FOOTNOTE.finditer(content, start, end):
        yield from _blank_parts(content, start, match.start(), located)
        yield Piece("point", source=located(*match.span()))
        start = match.end()
    yield from _blank_parts(content, start, end, located)


def _blank_parts(content: str, start: int, end: int, located: Callable[[int, int], Slice]) -> Iterator[Piece]:
    for match in BLANK_PARTS.finditer(content, start, end):
        yield Piece("text", match.group(), source=located(*match.span()))


def _html_piece(tag: str, source: Slice) -> Piece:
    match = _HTML_NAME.match(tag)
    if not match or tag.endswith("/>") or match[2].lower() in ("br", "img", "wbr", "input"):
        return Piece("point", source=source, stands_for="break" if match and match[2].lower() == "br" else "")
    return Piece("close" if match[1] else "open", name=f"<{match[2].lower()}>", source=source)


def _end(parser: MarkdownIt, content: str, token: Token, start: int) -> int:
    """Where the source of a token ends."""
    match token.type:
        case "text":
            return _after(content, token.content, start)
        case "text_special" | "em_open" | "em_close" | "strong_open" | "strong_close" | "s_open" | "s_close":
            return _after(content, token.markup, start)
        case "softbreak":
            return _matched(_SOFT_BREAK, content, start)
        case "hardbreak":
            return _matched(_HARD_BREAK, content, start)
        case "html_inline":
            return _after(content, token.content, start)
        case "code_inline":
            closing = re.compile(rf"(?<!`){token.markup}(?!`)").search(content, _after(content, token.markup, start))
            if closing is None:
                raise LostPosition
            return closing.end()
        case "link_open":
            return _after(content, "[", start)
        case "image":
            return _link_end(parser, content, _after(content, f"![{token.content}", start))
        case "link_close":
            return _link_end(parser, content, start)
    raise LostPosition


def _after(content: str, expected: str, start: int) -> int:
    if not content.startswith(expected, start):
        raise LostPosition
    return start + len(expected)


def _matched(pattern: re.Pattern[str], content: str, start: int) -> int:
    match = pattern.match(content, start)
    if match is None:
        raise LostPosition
    return match.end()


def _link_end(parser: MarkdownIt, content: str, start: int) -> int:
    """The end of `](destination "title")`, `][label]` or `]`."""
    position = _after(content, "]", start)
    if content.startswith("(", position):
        end = _destination_end(parser, content, position + 1)
        if end is not None:
            return end
    label = _LABEL.match(content, position)
    return label.end() if label else position


def _destination_end(parser: MarkdownIt, content: str, start: int) -> int | None:
    def after_blanks(position: int) -> int:
        return position + len(content[position:]) - len(content[position:].lstrip(" \t\n"))

    length = len(content)
    position = after_blanks(start)
    destination = parser.helpers.parseLinkDestination(content, position, length)
    if destination.ok:
        position = after_blanks(destination.pos)
        title = parser.helpers.parseLinkTitle(content, position, length)
        if title.ok and position > destination.pos:
            position = after_blanks(title.pos)
    return position + 1 if content.startswith(")", position) else None
