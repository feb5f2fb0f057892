"""Where a text ends inside a paragraph: at a line break, or between tags without a blank in between.

In `<a>Home</a><a>The files</a>` and `<strong>Note</strong>The file is open.` there are two texts, which a page shows
separately. `<b>un</b>do` and `H<sub>2</sub>O` are single words.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...text.spans import is_in_word
from .pieces import Piece, first_letters

WORDS_TOUCH = "two words touch at a tag, and are read as one"  # a reason for a review
SENTENCE_END = re.compile(r"[.!?…:;。！？]['\"”’»)\]]*$")
_CLOSING_SIGN = re.compile(r"[.,:;!?…)\]»”’]$")
_LINKS = frozenset(["a", "link", "hyperlink", "button"])
# Elements that change the appearance of letters, possibly inside a word.
_STYLES = frozenset(
    ["b", "big", "em", "font", "format", "i", "ins", "mark", "s", "small", "strike", "strong", "tt", "u", "range"]
)
_RAISED = frozenset(["sub", "sup", "rt", "rp", "rb"])
_LEAST = 3  # letters of two neighbouring words; a style inside a word changes fewer
_LOCAL_NAME = re.compile(r"(?:\{.*\}|<|tag )?([^\s>]*)")


class TextEnds(NamedTuple):
    """Where texts end: at breaks, and before other pieces. Also where it is unclear whether a word continues."""

    breaks: frozenset[int]
    cuts: frozenset[int]
    doubts: frozenset[int]


def continues(line: str, after: str) -> bool:
    """Return True if a sentence clearly continues in the next line: no sign ends it, and a small letter follows."""
    return not SENTENCE_END.search(line) and after[:1].islower()


def find_text_ends(pieces: Sequence[Piece], partners: Mapping[int, int]) -> TextEnds:
    """Find the ends of texts between the boundaries of a paragraph. `partners` pairs its tags.

    A line break is not an end if the sentence continues after it and began with a capital letter: lines that all begin
    with small letters are a list.
    """
    boundaries = {index for index, piece in enumerate(pieces) if piece.kind == "boundary"}
    breaks = {index for words in _between(pieces, boundaries) for index in _breaks(pieces, words)}
    cuts = {one for words in _between(pieces, boundaries | breaks) for one in _cuts(pieces, partners, words)}
    sure = frozenset(index for index, is_sure in cuts if is_sure)
    return TextEnds(frozenset(breaks), sure, frozenset(index for index, is_sure in cuts if not is_sure))


def _between(pieces: Sequence[Piece], borders: Collection[int]) -> Iterator[list[int]]:
    """Yield, for each stretch between two borders, the indices of the pieces that the model reads."""
    words: list[int] = []
    for index, piece in enumerate(pieces):
        if index in borders:
            yield words
            words = []
        elif piece.text.strip():
            words.append(index)
    yield words


def _breaks(pieces: Sequence[Piece], words: Sequence[int]) -> Iterator[int]:
    """Yield the breaks that end a line of a text."""
    first = 0  # the word that begins the sentence
    for number, (before, after) in enumerate(pairwise(words), start=1):
        breaks = [index for index in range(before + 1, after) if pieces[index].stands_for == "break"]
        begins_small = pieces[words[first]].text.strip()[:1].islower()
        goes_on = not begins_small and continues(pieces[before].text.strip(), pieces[after].text.strip())
        if len(breaks) > 1 or (breaks and not goes_on):
            first = number
            yield from breaks


def _cuts(pieces: Sequence[Piece], partners: Mapping[int, int], words: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """Yield the pieces before which a text ends (the first tag of the next text), and whether this is certain."""
    first = words[0] if words else 0  # of the current text
    for before, after in pairwise(words):
        left, right = pieces[before], pieces[after]
        between = range(before + 1, after)
        closes = [index for index in between if pieces[index].kind == "close" and index in partners]
        opens = [index for index in between if pieces[index].kind == "open" and index in partners]
        is_blank = left.text[-1:].isspace() or right.text[:1].isspace() or any(pieces[i].text for i in between)
        if is_blank or not left.kind == right.kind == "text" or any(pieces[i].stands_for for i in between):
            continue
        # An element at the beginning of the text, such as an inline heading, or at its end, such as a button.
        is_edge = any(partners[index] < first for index in closes)
        is_edge = is_edge or any(partners[index] > words[-1] for index in opens)
        closed, opened = ({_local_name(pieces[index]) for index in some} for some in (closes, opens))
        if not (closed or opened) or (closed | opened) & _RAISED:
            continue
        is_sure = _are_apart(left.text, right.text, closed, opened, is_edge=is_edge)
        if is_sure or _may_be_apart(left.text, right.text):
            first = after if is_sure else first
            yield closes[-1] + 1 if closes else opens[0], is_sure


def _are_apart(left: str, right: str, closed: set[str], opened: set[str], *, is_edge: bool) -> bool:
    """Return True if two texts are separate, by their letters and by the elements that end and begin between them."""
    words = first_letters(left[::-1]), first_letters(right)
    begins_anew = _begins_anew(left, right)
    if not (closed and opened):
        has_link = bool((closed | opened) & _LINKS)
        begins_anew = begins_anew or (right[0].isdigit() and words[0].isalpha() and len(words[0]) >= _LEAST)
        return begins_anew and (is_edge or has_link)
    if closed & _LINKS and opened & _LINKS:
        return all(any(map(str.isalpha, text)) for text in (left, right))
    if begins_anew:
        return True
    is_style = closed | opened <= _STYLES and closed == opened
    is_spaced = is_in_word(left[-1]) and is_in_word(right[0])
    is_long = all(word.isdigit() or len(word) >= _LEAST for word in words)
    return is_spaced and is_long and not is_style


def _begins_anew(left: str, right: str) -> bool:
    return right[0].isupper() and (left[-1].islower() or _CLOSING_SIGN.search(left) is not None)


def _may_be_apart(left: str, right: str) -> bool:
    """Return True if nobody can know whether two parts are one word, such as Java<b>Script</b>."""
    is_long = len(first_letters(left[::-1])) >= _LEAST and len(first_letters(right)) >= _LEAST
    return is_long and _begins_anew(left, right)


def _local_name(piece: Piece) -> str:
    match = _LOCAL_NAME.match(piece.name)
    return match[1].lower() if match else ""
