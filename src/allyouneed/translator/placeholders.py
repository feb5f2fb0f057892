"""Fix the blanks and signs next to placeholders and other copied spans, which must be the same as in the source."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from ..text.spans import APART, blanked, is_in_word, iter_spans

KINDS = ("placeholders",)
# Signs at the ends of a run that belong to the sentence; another language may use other signs.
EDGES = ".,;:!?…¿¡\"'“”„‘’‚«»‹›。、，．：；？！"
BRACKETS = ("()", "[]", "{}", "<>", "（）", "【】", "「」")
OPENING, CLOSING = map("".join, zip(*BRACKETS, strict=True))
_SPAN = "\0"  # stands in for each character of a span
SIGNS_AND_SPANS = re.compile(r"[^\w\s]++")


def separate_placeholders(source: str, text: str) -> str:
    """Insert a blank where a placeholder touches a word or a sentence end, unless it also does in the source."""
    text = _freed(source, text)
    as_in_source = {(span, side) for span, *sides in touching(source) for side, touches in enumerate(sides) if touches}
    in_source = {span.text for span in iter_spans(source, KINDS)}
    parts: list[str] = []
    position = 0
    for span in iter_spans(text, KINDS):
        touches = _touched_sides(text, *span.bounds, position)
        gaps = [
            " " if span.text in in_source and touches[side] and (span.text, side) not in as_in_source else ""
            for side in (0, 1)
        ]
        parts += [text[position : span.start], gaps[0], span.text, gaps[1]]
        position = span.end
    return "".join([*parts, text[position:]])


def _freed(source: str, text: str) -> str:
    """Insert blanks around placeholders that have run into a word of the translation and are no longer recognized."""
    wanted = Counter(span.text for span in iter_spans(source, KINDS))
    there = [span for span in iter_spans(text, KINDS) if span.text in wanted]
    missing = wanted - Counter(span.text for span in there)
    rest = blanked(text, (span.bounds for span in there))
    places: list[tuple[int, int]] = []
    for name, count in sorted(missing.items(), key=lambda item: -len(item[0])):
        for match in islice(re.finditer(re.escape(name), rest), count):
            places.append(match.span())
        rest = blanked(rest, places[-count:])
    parts: list[str] = []
    position = 0
    for start, end in sorted(places):
        before, after = text[start - 1 : start], text[end : end + 1]
        parts += [text[position:start], " " * _is_of_word(before), text[start:end], " " * _is_of_word(after)]
        position = end
    return "".join([*parts, text[position:]])


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def touching(text: str) -> Counter[tuple[str, bool, bool]]:
    """Count how often each placeholder touches a word, on each side."""
    found = Counter[tuple[str, bool, bool]]()
    before = 0
    for span in iter_spans(text, KINDS):
        sides = _touched_sides(text, *span.bounds, before)
        found[span.text, *sides] += any(sides)
        before = span.end
    return +found


def _touched_sides(text: str, start: int, end: int, before: int) -> tuple[bool, bool]:
    """Return whether text[start:end] touches a word before it, and whether it touches a word after it.

    On its left, the end of a sentence or clause also counts, and so does another placeholder that ends at `before`.
    """
    follows = start > 0 and (start == before or is_in_word(text[start - 1]) or text[start - 1] in ".,;:!?")
    return follows, end < len(text) and is_in_word(text[end])


def signed_runs(text: str) -> Iterator[str]:
    """Find runs of copied spans and signs without a word in between: `(%name%)`, `{hours}:{minutes}`, `+%d`.

    A run does not include the punctuation at its ends, nor a bracket without its partner.
    """
    masked = blanked(text, (span.bounds for span in iter_spans(text, APART)), _SPAN)
    for match in SIGNS_AND_SPANS.finditer(masked):
        run = match[0]
        if _SPAN not in run:
            continue
        start, end = match.span()
        if start > 0 and is_in_word(text[start - 1]):
            run = run[run.index(_SPAN) :]
        if end < len(text) and is_in_word(text[end]):
            run = run[: run.rindex(_SPAN) + 1]
        start += match[0].index(run)
        inner = _without_edges(run)
        if inner.strip(_SPAN):
            start += run.index(inner)
            yield text[start : start + len(inner)]


def _without_edges(run: str) -> str:
    surplus: dict[str, int] = {}  # how many of each bracket have no partner
    for opening, closing in zip(OPENING, CLOSING, strict=True):
        difference = run.count(opening) - run.count(closing)
        surplus |= {opening: difference, closing: -difference}
    start = 0
    end = len(run)

    def is_edge(sign: str, brackets: str) -> bool:
        is_surplus = sign in brackets and surplus[sign] > 0
        if is_surplus:
            surplus[sign] -= 1
        return is_surplus or sign in EDGES

    while start < end and is_edge(run[start], OPENING):
        start += 1
    while start < end and is_edge(run[end - 1], CLOSING):
        end -= 1
    return run[start:end]
