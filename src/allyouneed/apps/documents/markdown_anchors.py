"""Links to headings in the same Markdown document, whose anchors are made of the words of the headings.

Programs make anchors in different ways. The way by which most links of a document lead to a heading is used for it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise
from typing import NamedTuple
from urllib.parse import quote, unquote

from markdown_it.token import Token

from .encoded_text import Edit, Slice

_EXPLICIT = re.compile(r"#([^\s{}]+)")
_HTML_ID = re.compile(r"<[^<>]*?\s(?:id|name)\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_LINK = re.compile(r"\]\(\s*<?#([^\s()<>]+)|(?<=\]:)\s*<?#([^\s<>]+)|\bhref\s*=\s*[\"']?#([^\"'\s<>]+)", re.IGNORECASE)
# A link to a heading of another Markdown document.
OTHER_DOCUMENT = re.compile(r"\]\(\s*<?(?![A-Za-z][\w+.-]+:)([^\s()<>#]+\.(?:md|mdx|markdown)#[^\s()<>]+)")


class Heading(NamedTuple):
    """The words of a heading, and the anchor that is written after it, if there is one."""

    text: str
    anchor: str


class Anchor(NamedTuple):
    """A link to an anchor of the same document, and where the link is written."""

    name: str
    span: Slice


def find_headings(tokens: Sequence[Token]) -> list[Heading]:
    """Find the headings of a parsed page."""
    headings = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            children = inline.children or []
            explicit = "".join(child.content for child in children if child.type == "attributes")
            anchor = _EXPLICIT.search(explicit)
            headings.append(Heading("".join(map(_shown_text, children)).strip(), anchor[1] if anchor else ""))
    return headings


def _shown_text(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "text_special", "code_inline", "opaque") else ""


def find_anchors(page: str, spans: Iterable[Slice]) -> Iterator[Anchor]:
    """Find the links to anchors in some parts of a page: ends of links, tags, and definitions."""
    for span in spans:
        for match in _LINK.finditer(page, *span):
            name = next(match.span(number) for number in (1, 2, 3) if match[number] is not None)
            yield Anchor(unquote(page[slice(*name)]), Slice(*name))


def moved_anchors(
    page: str, anchors: Sequence[Anchor], headings: Sequence[Heading], new_headings: Sequence[Heading]
) -> list[Edit]:
    """Edit a page so that its links lead to the headings again after the headings' words have changed."""
    fixed = {unquote(match[1]) for match in _HTML_ID.finditer(page)}
    fixed |= {heading.anchor for heading in headings}
    unfixed = [anchor for anchor in anchors if anchor.name not in fixed]
    if not unfixed or len(headings) != len(new_headings):
        return []

    def targets(way: "_Way") -> Mapping[str, str]:
        return dict(zip(_names(headings, way), _names(new_headings, way), strict=True))

    new_names = max(map(targets, _WAYS), key=lambda names: sum(anchor.name in names for anchor in unfixed))
    return [
        Edit(*anchor.span, quote(new) if "%" in page[slice(*anchor.span)] else new)
        for anchor in unfixed
        if (new := new_names.get(anchor.name)) and new != anchor.name
    ]


class _Way(NamedTuple):
    """A way to make an anchor from a heading, and the separator before the number of a repeated anchor."""

    name: Callable[[str], str]
    mark: str


def _names(headings: Sequence[Heading], way: _Way) -> list[str]:
    """Make the anchors of headings, each of them unique."""
    used = set[str]()
    names = []
    for heading in headings:
        first = heading.anchor or way.name(heading.text)
        name, number = first, 0
        while name in used or not name:
            number += 1
            name = f"{first}{way.mark}{number}"
        used.add(name)
        names.append(name)
    return names


def _is_in_name(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN" or character in "_- "


def _github(text: str) -> str:
    return "".join(filter(_is_in_name, text.lower())).replace(" ", "-")


def _python_markdown(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _pandoc(text: str) -> str:
    kept = "".join(character for character in text.lower() if _is_in_name(character) or character == ".")
    letters = dropwhile(lambda character: not character.isalpha(), re.sub(r"\s+", "-", kept))
    return "".join(letters) or "section"


_WAYS = (_Way(_github, "-"), _Way(_python_markdown, "_"), _Way(_pandoc, "-"))
