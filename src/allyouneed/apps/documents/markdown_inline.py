"""The inline content of a Markdown paragraph as pieces with their positions, which markdown-it does not say.

The rules of the parser note where each token ends; a token begins where the one before it ended.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.attrs import attrs_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from .markdown_markers import ATTRIBUTE_LIST, JSX_TAG, LINE_SIGN, NOTE, OPAQUE
from .pieces import BLANK_PARTS, Piece, opaque_point, tag_partners

_HTML_NAME = re.compile(r"<(/?)([A-Za-z][\w.:-]*)")
_LINE_BREAKS = ("softbreak", "hardbreak")

InlineRule = Callable[[StateInline, bool], bool]


class LostPosition(Exception):  # noqa: N818  no failure of the program: the paragraph is left as it is
    """The source of a token is not where it should be."""


class Source(NamedTuple):
    """Characters `start` to `end` of a content. The end of a link that is named by its text has this name, `label`."""

    start: int
    end: int
    label: str = ""

    def read(self, content: str) -> str:
        """The characters."""
        return content[self.start : self.end]


def make_parser() -> MarkdownIt:
    """CommonMark with tables, strikethrough, definitions, footnotes, admonitions and what is in `markdown_markers`.

    Escapes and entities are tokens of their own, and each token that is not text has the position of its end.
    """
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    parser.use(admon_plugin).use(deflist_plugin).use(
        footnote_plugin, inline=False, move_to_end=False, always_match_refs=True
    )
    parser.use(attrs_plugin, after=(), spans=True)
    parser.disable("footnote_ref")  # it takes quadratic time
    rules = parser.inline.ruler
    rules.before("escape", "opaque", _pattern_rule("opaque", OPAQUE))
    rules.after("opaque", "note", _pattern_rule("note", NOTE))
    rules.after("opaque", "attributes", _pattern_rule("attributes", ATTRIBUTE_LIST))
    rules.after("html_inline", "jsx", _pattern_rule("html_inline", JSX_TAG))
    for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
        rules.at(name, _with_end(rule))
    return parser


def _pattern_rule(kind: str, pattern: re.Pattern[str]) -> InlineRule:
    def rule(state: StateInline, silent: bool) -> bool:
        match = pattern.match(state.src, state.pos, state.posMax)
        if match and not silent:
            state.push(kind, "", 0).content = match.group()
        state.pos = match.end() if match else state.pos
        return match is not None

    return rule


def _with_end(rule: InlineRule) -> InlineRule:
    """The rule, which notes on its last token where that ends."""

    def noting(state: StateInline, silent: bool) -> bool:
        before = len(state.tokens)
        is_matched = rule(state, silent)
        if is_matched and not silent and len(state.tokens) > before:
            state.tokens[-1].meta["end"] = state.pos
        return is_matched

    return noting


def token_sources(content: str, tokens: Sequence[Token]) -> Iterator[tuple[Token, Source]]:
    """Each of the `tokens` of `content`, with where it stands. Raises `LostPosition`."""
    position = 0
    opened: list[int] = []
    for token in tokens:
        kind = token.type.rpartition("_")[0]
        expected = {"text": token.content, "link_open": "[", "span_open": "["}.get(token.type)
        expected = token.markup if kind in ("em", "strong", "s") else expected
        if expected is not None and not content.startswith(expected, position):
            raise LostPosition
        source = Source(position, token.meta["end"] if expected is None else position + len(expected))
        position = source.end
        if token.type == "link_open":
            opened.append(position)
        elif token.type in ("link_close", "image"):
            start = opened.pop() if token.type == "link_close" else source.start + 2
            end = source.start if token.type == "link_close" else start + len(token.content)
            if content[end : source.end] in ("]", "][]"):
                source = source._replace(label=" ".join(content[start:end].split()))
        yield token, source
    if content[position:].strip():
        raise LostPosition


def inline_pieces(content: str, sources: Sequence[tuple[Token, Source]]) -> list[Piece]:
    """The pieces of `content`; the `source` of each is a `Source`."""
    pieces: list[Piece] = []
    begins_line = True
    breaks = (source.end for token, source in sources if token.type in _LINE_BREAKS)
    keeps_lines = any(LINE_SIGN.match(content, at) for at in breaks)  # a poem, or terms and their definition
    for token, source in sources:
        last = pieces[-1] if pieces else Piece("text", source=source)
        sticks = token.type == "attributes" or token.content.startswith("<!--")
        if sticks and last.kind in ("close", "point") and last.source.end == source.start:
            pieces[-1] = last._replace(source=last.source._replace(end=source.end))
            continue
        if token.type == "softbreak" and keeps_lines:
            pieces.append(Piece("boundary", source=source))
        else:
            pieces += _token_pieces(content, token, source, begins_line)
        begins_line = token.type in _LINE_BREAKS
    return _without_readings(pieces)


def _without_readings(pieces: list[Piece]) -> list[Piece]:
    """The pieces with a point in place of each reading of a word in ruby, which is no part of the text."""
    result: list[Piece] = []
    partners = tag_partners(pieces)
    end = 0
    for index, piece in enumerate(pieces):
        last = partners.get(index, -1)
        if index >= end and piece.name in ("<rt>", "<rp>") and last > index:
            end = last + 1
            result.append(Piece("point", source=Source(piece.source.start, pieces[last].source.end)))
        elif index >= end:
            result.append(piece)
    return result


def _token_pieces(content: str, token: Token, source: Source, begins_line: bool) -> Iterator[Piece]:
    match token.type:
        case "text":
            start = source.start
            if begins_line and (sign := LINE_SIGN.match(content, start, source.end)):
                yield Piece("boundary", source=Source(start, sign.end()))
                start = sign.end()
            for match in BLANK_PARTS.finditer(content, start, source.end):
                yield Piece("text", match.group(), source=Source(*match.span()))
        case "text_special":
            yield Piece("text", token.content, source=source)
        case "softbreak":
            yield Piece("text", " ", source=source)
        case "hardbreak":
            yield Piece("point", source=source, stands_for="break")
        case "code_inline":
            yield opaque_point(token.content, source)
        case "opaque":
            yield opaque_point(token.content.strip("$!\\()[]<>"), source)
        case "image" | "attributes":
            yield Piece("point", source=source, stands_for="word")
        case "note":
            yield Piece("point", source=source)
        case "html_inline":
            yield _html_piece(token.content, source)
        case _:
            name, _, side = token.type.rpartition("_")
            yield Piece("open" if side == "open" else "close", name=name, source=source)


def _html_piece(tag: str, source: Source) -> Piece:
    match = _HTML_NAME.match(tag)
    if not match or tag.endswith("/>") or match[2].lower() in ("br", "img", "wbr", "input"):
        return Piece("point", source=source, stands_for="break" if match and match[2].lower() == "br" else "")
    return Piece("close" if match[1] else "open", name=f"<{match[2].lower()}>", source=source)
