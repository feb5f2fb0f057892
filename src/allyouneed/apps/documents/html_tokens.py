"""Split HTML into tokens with their positions, as the tokenizer of the HTML standard does, in linear time.

The parsers of the standard library and of lxml do not report where a token ends, or take quadratic time for some pages.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Literal, NamedTuple

# Quantifiers are possessive, because text after a tag that never ends must not be searched again and again.
_VALUE = r"\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+"
_ATTRIBUTE = rf"[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:{_VALUE}))?+"
_START_TAG = re.compile(rf"<([A-Za-z][^\s/>]*+)(?:[\s/]++|{_ATTRIBUTE})*+>")
_ATTRIBUTES = re.compile(rf"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+({_VALUE}))?+")
_END_TAG = re.compile(r"</([A-Za-z][^\s/>]*+)[^>]*+>")
_RAW_TEXT = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes"})
_RAW_WITH_ENTITIES = frozenset({"title", "textarea"})


class Token(NamedTuple):
    """The characters from `start` to `end` of a page. `name` is the name of a tag, in lower case."""

    kind: Literal["text", "start", "end", "comment", "raw"]
    start: int
    end: int
    name: str = ""


class Attribute(NamedTuple):
    """An attribute of a start tag: its value, and the position of the value in the page, with its quotes."""

    value: str
    start: int
    end: int


def html_tokens(page: str, *, is_xml: bool = False, is_xhtml: bool = False) -> Iterator[Token]:
    """Yield the tokens of a page; together they are the whole page. An unclosed tag or comment is "raw" to the end.

    With `is_xml`, the content of every element consists of tags and text, whatever its name. With `is_xhtml`, an
    element whose start tag ends in "/>" has no content.
    """
    without_tags = frozenset[str]() if is_xml else _RAW_TEXT | _RAW_WITH_ENTITIES
    at = text_start = 0
    while (less := page.find("<", at)) != -1:
        token = _token_at(page, less)
        if token is None:
            at = less + 1
            continue
        if less > text_start:
            yield Token("text", text_start, less)
        yield token
        at = text_start = token.end
        is_empty = is_xhtml and page[token.end - 2] == "/"
        if token.kind == "start" and token.name in without_tags and not is_empty:
            closing = re.compile(rf"</{re.escape(token.name)}(?=[\s/>])", re.IGNORECASE).search(page, at)
            at = text_start = closing.start() if closing else len(page)
            if at > token.end:
                yield Token("text" if token.name in _RAW_WITH_ENTITIES else "raw", token.end, at)
    if len(page) > text_start:
        yield Token("text", text_start, len(page))


def tag_attributes(page: str, token: Token) -> dict[str, Attribute]:
    """Read the attributes of a start tag that have a value, by lower-case name. Of equal names, the first counts."""
    attributes: dict[str, Attribute] = {}
    for match in _ATTRIBUTES.finditer(page, token.start + 1 + len(token.name), token.end - 1):
        value = match[2]
        bare = value[1:-1] if value and value[0] in "\"'" else value or ""
        start, end = match.span(2) if value is not None else (match.end(), match.end())
        attributes.setdefault(match[1].lower(), Attribute(unescape(bare), start, end))
    return attributes


def is_empty_tag(page: str, token: Token) -> bool:
    """Return True if a start tag ends in "/>". A slash after an unquoted value belongs to the value."""
    attributes = _ATTRIBUTES.finditer(page, token.start + 1 + len(token.name), token.end - 1)
    return page.startswith("/>", token.end - 2) and all(one.end() < token.end - 1 for one in attributes)


def _token_at(page: str, at: int) -> Token | None:
    """Return the token that begins with the "<" at a position; None if this "<" is plain text."""
    following = page[at + 1 : at + 2]
    if following.isascii() and following.isalpha():
        match = _START_TAG.match(page, at)
        return Token("start", at, match.end(), match[1].lower()) if match else Token("raw", at, len(page))
    if page.startswith("</", at):
        if match := _END_TAG.match(page, at):
            return Token("end", at, match.end(), match[1].lower())
        return _up_to(page, at, ">") if page[at + 2 : at + 3] else None
    if page.startswith("<!--", at):
        return _up_to(page, at, "-->")
    if page.startswith("<![CDATA[", at):
        return _up_to(page, at, "]]>")
    return _up_to(page, at, ">") if following in ("!", "?") else None


def _up_to(page: str, at: int, ending: str) -> Token:
    end = page.find(ending, at + 2)
    return Token("comment", at, end + len(ending)) if end != -1 else Token("raw", at, len(page))
