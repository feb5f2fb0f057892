"""Fields of tags next to an open word, as in `walk V;PST` or `Number=Plur|Case=Nom dog`: each tag becomes one token."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_TAG = re.compile(r" ?[^\s;|=]+|[;|=][^\s;|=]*")  # with the sign before it, which no word contains
_CODE = re.compile(r"[!-`{-~]+")  # of capitals, digits and marks, as `+PL` or `3SG`
NEARLY_ALL = 0.9  # of the texts have a field of tags, if any has
RARE_SHARE, RECURRING = 0.05, 3  # at most this share of the tags occurs once; a tag occurs so often on average
SHORT = 12  # characters of a tag, on average


def find_tags(texts: Iterable[str]) -> list[str]:
    """Find the tags in the fields at the ends of texts, each with the sign before it, in alphabetical order.

    A field is a string between spaces. It holds tags on three conditions: it has several, separated by `;`, `|` or `=`,
    or consists of capitals, digits and marks; nearly all of them recur; most have a letter. At least one field of a
    text
    holds none.
    """
    rows = [text.split(" ") for text in texts]
    seen = set[str]()
    for end in (-1, 0):
        while tags := _closed_tags([row[end] for row in rows if len(row) > 1], len(rows)):
            seen |= tags
            rows = [row[:-1] if end else row[1:] for row in rows if len(row) > 1]
    return sorted(seen)


def _closed_tags(fields: Sequence[str], texts: int) -> set[str]:
    """Return the tags of a field of many texts; none if it is a field of words."""
    if not fields or len(fields) < NEARLY_ALL * texts:
        return set()
    divided = sum(len(_TAG.findall(field)) > 1 for field in fields)
    if 2 * divided < len(fields) and not all(map(_CODE.fullmatch, fields)):
        return set()
    counts = Counter(tag for field in fields for tag in _TAG.findall(" " + field) if len(tag) > 1)
    total = counts.total()
    once = sum(count == 1 for count in counts.values())
    with_letters = sum(count for tag, count in counts.items() if any(map(str.isalpha, tag)))  # others are numbers
    is_closed = once <= RARE_SHARE * total and total >= RECURRING * len(counts) and 2 * with_letters >= total
    return set(counts) if is_closed and sum(map(len, counts)) <= SHORT * len(counts) else set()
