"""The elements of a page: where each one ends, and which ones are marked as text in another language."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from ...config.language_tags import primary_language
from .html_tokens import Token, is_empty_tag, tag_attributes

VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
# Elements whose end tag may be omitted, with the tags that end them.
_IMPLIED_ENDS = {
    name: frozenset(ending.split())
    for names, ending in (
        ("li", "li"),
        ("dt dd", "dt dd"),
        ("td th", "td th tr tbody thead tfoot"),
        ("tr", "tr tbody thead tfoot"),
        ("rt rp", "rt rp rb rtc"),
        ("option", "option optgroup"),
        ("optgroup", "optgroup"),
        ("p", "address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure "
         "footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p pre search section summary "
         "table ul xmp"),
    )
    for name in names.split()
}  # fmt: skip
_ENDING = frozenset[str]().union(*_IMPLIED_ENDS.values())
_CONTAINERS = frozenset(
    ["ul", "ol", "menu", "dl", "table", "ruby", "select", "button", "object"]
)  # no end tag takes effect through these
_DEPTH = 64  # how many open elements a tag may end; an unlimited number would take quadratic time
_ROOTS = frozenset(["html", "body"])


class PageElements(NamedTuple):
    """For each start tag, the token with which its element ends; for each token, the language that it is marked as.

    A token is not listed if its only mark is `root`, the mark of the whole page.
    """

    ends: Sequence[int]
    languages: Sequence[str]
    root: frozenset[str]


def find_elements(page: str, tokens: Sequence[Token]) -> PageElements:
    """Find the elements of a page. Omitted end tags are supplied by the rules of HTML."""
    ends = [len(tokens)] * len(tokens)
    languages: list[str] = []
    root = set[str]()
    opened: list[tuple[int, str, str]] = []  # token, name and language of each element
    counts = Counter[str]()

    def close(number: int, end: int) -> None:
        for index, name, _ in opened[number:]:
            ends[index] = end
            counts[name] -= 1
        del opened[number:]

    for index, token in enumerate(tokens):
        if token.kind == "start" and token.name in _ENDING:
            while (ended := _ended(opened, token.name)) is not None:
                close(ended, index)
        language = opened[-1][2] if opened else ""
        if token.kind == "start":
            marked = _language(page, token)
            if marked is not None and token.name in _ROOTS:
                root.add(marked)
            elif marked is not None:
                language = marked
            if token.name in VOID or is_empty_tag(page, token):
                ends[index] = index + 1
            else:
                opened.append((index, token.name, language))
                counts[token.name] += 1
        languages.append(language)
        if token.kind == "end" and counts[token.name]:
            numbers = range(len(opened) - 1, -1, -1)
            number = next(number for number in numbers if opened[number][1] == token.name)
            start = opened[number][0]
            close(number, index)
            ends[start] = index + 1
    return PageElements(ends, languages, frozenset(root))


def _ended(opened: Sequence[tuple[int, str, str]], name: str) -> int | None:
    """Return the index of the innermost open element that a start tag with this name ends; None if there is none."""
    for number in islice(range(len(opened) - 1, -1, -1), _DEPTH):
        inner = opened[number][1]
        if name in _IMPLIED_ENDS.get(inner, ()):
            return number
        if inner in _CONTAINERS:
            return None
    return None


def _language(page: str, token: Token) -> str | None:
    if "lang" not in page[token.start : token.end].lower():
        return None
    values = tag_attributes(page, token)
    return next((values[name].value.strip() for name in ("lang", "xml:lang") if name in values), None)


def own_languages(tokens: Sequence[Token], elements: PageElements, source: str, target: str) -> set[str]:
    """Return the languages of a page: `source` and that of its root; without these, the language of most characters.

    A root that names the target language is ignored if the source language is different: it is a mistake that nobody
    has corrected yet.
    """
    languages_read = {primary_language(language) for language in (source, *elements.root)} - {""}
    if primary_language(source) not in ("", primary_language(target)):
        languages_read.discard(primary_language(target))
    if languages_read:
        return languages_read
    sizes = Counter[str]()
    for token, language in zip(tokens, elements.languages, strict=True):
        if token.kind == "text":
            sizes[primary_language(language)] += token.end - token.start
    return {language for language, _ in sizes.most_common(1)}
