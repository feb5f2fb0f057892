"""Where a long text may be cut: at the ends of sentences, else of clauses, else of words."""

import re
from collections.abc import Callable

from sentencex import segment  # type: ignore[import-untyped]


def sentences(text: str) -> list[str]:
    """The sentences of a text, outer blanks left out.

    The sentencex library knows abbreviations (Dr., z. B.), initials, quotations and the full stops
    of many scripts. It wants a language; a bundle does not know its own, and English is what the
    library falls back on for most.
    """
    return [sentence.strip() for sentence in segment("en", text) if sentence.strip()]


def cut(text: str, fits: Callable[[str], bool]) -> list[str]:
    """`text` in pieces that fit: sentences, and of one that does not fit, clauses; of these, words.

    Clauses and words are put together again as long as they fit. A word that does not fit stays as it is.
    """
    return [piece for sentence in sentences(text) for piece in _cut_sentence(sentence, fits)]


def _cut_sentence(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    if fits(sentence):
        return [sentence]
    clauses = re.split(r"(?<=[,;:])\s+|(?<=[，；：、])", sentence)
    words = [word for clause in clauses for word in ([clause] if fits(clause) else clause.split())]
    pieces = words[:1]
    for word in words[1:]:
        if fits(longer := f"{pieces[-1]} {word}"):
            pieces[-1] = longer
        else:
            pieces.append(word)
    return pieces
