"""Checks of texts and pairs that a caller passes."""

from collections.abc import Iterable, Iterator, Sequence

from ..errors import InputError


def checked_texts(texts: Iterable[str], *, first: int = 1) -> Iterator[str]:
    """Yield the texts, numbered from `first` in errors. Refuses a single string, and texts that are not strings."""
    _refuse_one_string(texts, "texts", "['…', '…']")
    for number, text in enumerate(texts, start=first):
        if not isinstance(text, str):
            raise InputError(f"a text must be a string; got {text!r:.60}", line=number)
        yield text


def checked_pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs. Refuses a single string, and anything that is not a source and a target."""
    _refuse_one_string(pairs, "pairs", "[('source', 'target'), …]")
    for number, pair in enumerate(pairs, start=1):
        if (
            not isinstance(pair, Sequence)
            or isinstance(pair, str)
            or len(pair) != 2
            or not all(isinstance(side, str) for side in pair)
        ):
            raise InputError(f"a pair must be two strings, (source, target); got {pair!r:.60}", line=number)
        yield pair


def checked_references(pairs: Iterable[tuple[str, str | Sequence[str]]]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each source with its references, of which there may be several. Refuses as `checked_pairs` does."""
    _refuse_one_string(pairs, "pairs", "[('source', 'target'), …]")
    for number, pair in enumerate(pairs, start=1):
        match pair:
            case [str() as source, str() as reference]:
                yield source, [reference]
            case [str() as source, [_, *_] as references] if all(isinstance(one, str) for one in references):
                yield source, references
            case _:
                raise InputError(
                    f"a pair must be a source and its reference translation, or a list of these; got {pair!r:.60}",
                    line=number,
                )


def checked_prefixes(prefix: str | Sequence[str], texts: int) -> list[str]:
    """Return a prefix for each text: the same string for all, or one of a list. Refuses anything else."""
    if isinstance(prefix, str):
        return [prefix] * texts
    if not isinstance(prefix, Sequence) or isinstance(prefix, bytes):
        raise InputError(f"prefix must be a string, or a list with one for each text; got {prefix!r:.60}")
    if len(prefix) != texts:
        raise InputError(f"prefix must be one string, or one for each of {texts} texts; got {len(prefix)}")
    for number, one in enumerate(prefix, start=1):
        if not isinstance(one, str):
            raise InputError(f"a prefix must be a string; got {one!r:.60}", line=number)
    return list(prefix)


def _refuse_one_string(items: object, what: str, expected: str) -> None:
    # A string is iterable too: it would be split into characters.
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        string = "the one string " if isinstance(items, str | bytes) else ""
        raise InputError(f"{what} must be a list, {expected}; got {string}{items!r:.60}")
