"""Find fields of tags next to a word, as in `walk V;PST` or `Number=Plur|Case=Nom dog`. Each tag becomes one token."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

_TAG = re.compile(r" ?[^\s;|=\\]+|[;|=][^\s;|=\\]*")  # with the sign before the tag, which no word contains
_CODE = re.compile(r"[!-`{-~]+")  # capitals, digits and marks, such as `+PL` or `3SG`
NEARLY_ALL = 0.9  # share of the texts that must have a field of tags
RARE_SHARE, RECURRING = 0.05, 3  # tags that occur once are at most this share; a tag occurs this often on average
SHORT = 12  # characters of a tag, on average


def find_tags(texts: Iterable[str]) -> list[str]:
    """Find the tags in the first and last fields of texts, each with the sign before it, sorted.

    A field is a string between spaces. The first fields of all texts, or the last fields, hold tags on three
    conditions: most have several parts, separated by `;`, `|` or `=`, or all consist of capitals, digits and marks;
    nearly all tags recur; and most tags have a letter. Each text keeps at least one field without tags.
    """
    rows = [text.split(" ") for text in texts]
    seen = set[str]()
    for end in (-1, 0):
        while tags := _closed_tags([row[end] for row in rows if len(row) > 1], len(rows)):
            seen |= tags
            rows = [row[:-1] if end else row[1:] for row in rows if len(row) > 1]
    return sorted(seen)


def _closed_tags(fields: Sequence[str], texts: int) -> set[str]:
    """Return the tags if these fields, one of each text, hold tags; nothing if they hold words."""
    if not fields or len(fields) < NEARLY_ALL * texts:
        return set()
    divided = sum(len(_TAG.findall(field)) > 1 for field in fields)
    if 2 * divided < len(fields) and not all(map(_CODE.fullmatch, fields)):
        return set()
    counts = Counter(tag for field in fields for tag in _TAG.findall(" " + field) if len(tag) > 1)
    total = counts.total()
    once = sum(count == 1 for count in counts.values())
    with_letters = sum(count for tag, count in counts.items() if any(map(str.isalpha, tag)))  # other tags are numbers
    is_closed = once <= RARE_SHARE * total and total >= RECURRING * len(counts) and 2 * with_letters >= total
    return set(counts) if is_closed and sum(map(len, counts)) <= SHORT * len(counts) else set()


def without(tags: Sequence[str], texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts without these tags."""
    tag = re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))) or "(?!)")
    return (tag.sub("", text) for text in texts)
