"""The checks of texts and pairs that a caller passes."""

from collections.abc import Iterable, Iterator

from ..errors import InputError


def checked_texts(texts: Iterable[str], *, first: int = 1) -> Iterator[str]:
    """The same texts, the first being number `first`. Refuses one string in place of several, and what is no string."""
    _refuse_one_string(texts, "texts", "['…', '…']")
    for number, text in enumerate(texts, start=first):
        if not isinstance(text, str):
            raise InputError(f"a text must be a string; got {text!r:.60}", line=number)
        yield text


def checked_pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The same pairs. Refuses a string in place of pairs, and anything that is not a source and a target."""
    _refuse_one_string(pairs, "pairs", "[('source', 'target'), …]")
    for number, pair in enumerate(pairs, start=1):
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(side, str) for side in pair):
            raise InputError(f"a pair must be two strings, (source, target); got {pair!r:.60}", line=number)
        yield pair


def _refuse_one_string(items: object, what: str, expected: str) -> None:
    # A string can be iterated too: it would be taken apart into its characters.
    if isinstance(items, str | bytes):
        raise InputError(f"{what} must be a list, {expected}; got the one string {items!r:.60}")
