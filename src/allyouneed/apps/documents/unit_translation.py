"""The translations of a unit's sentences → that of the unit: its tags placed, and the reasons for a review."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from ...text.sentences import CharSpan
from ...text.spans import is_in_word, iter_spans
from ...translator.agreement import code_signs_differ, numbers_are_lost, spans_differ
from ...translator.translation import Flag, Translation
from ..documents import Mark, TranslationUnit, UnitTranslation
from ..documents.inline import WordLink, place_marks

_REASONS: dict[Flag, str] = {
    "repeats": "the first translation repeated itself",
    "wrong_spans": "a placeholder, address, number or sign differs",
    "unfinished": "the translation is cut off",
    "long": "longer than the sentences of the training data",
    "unknown": "with characters or words that the training data did not have",
}
_SIGNS_AROUND = ".,;:!?…()[]\"'“”‘’«»„¿¡"
# What every translation must have as its source has it.
_KEPT_SPANS = ("urls", "emails", "tags", "placeholders", "emoji")


def unit_translation(
    unit: TranslationUnit, spans: Sequence[CharSpan], parts: Sequence[Translation], min_confidence: float
) -> UnitTranslation:
    """A unit from the translations of its sentences, `spans` of its text, and the reasons for a review."""
    texts: list[str] = []
    links: list[WordLink] = []
    position = shift = target_shift = 0
    for (start, end), one in zip(spans, parts, strict=True):
        part = one if one.is_sure else replace(one, text=_separate_placeholders(one.source, one.text))
        texts += [unit.text[position:start], part.text.strip()]
        links += [(i + shift, j + target_shift) for i, j in _word_links(part)]
        shift, target_shift, position = shift + len(part.source.split()), target_shift + len(part.text.split()), end
    text = "".join([*texts, unit.text[position:]])
    marks = _outside_spans(unit, text, place_marks(unit.text, unit.marks, text, links, unit.opaque))
    return UnitTranslation(text, marks, tuple(_reasons(unit, text, marks, parts, min_confidence)))


def _outside_spans(unit: TranslationUnit, text: str, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """The marks with none inside a placeholder or address, if none is in the source."""

    def around(mark: Mark, spans: Sequence[CharSpan]) -> CharSpan | None:
        return next(((start, end) for start, end in spans if start < mark.at < end), None)

    source_spans, spans = ([span.bounds for span in iter_spans(one, _KEPT_SPANS)] for one in (unit.text, text))
    if any(around(mark, source_spans) for mark in unit.marks):
        return tuple(marks)
    moved: list[Mark] = []
    for span, group in groupby(marks, key=lambda mark: around(mark, spans)):
        inside = list(group)
        # All to one side, which keeps their order.
        at = span and (span[0] if inside[0].kind == "open" else span[1])
        moved += [mark if at is None else mark._replace(at=at) for mark in inside]
    return tuple(moved)


def _word_links(part: Translation) -> list[WordLink]:
    """The alignment of a sentence, its words counted in the texts as they stand in the document."""
    words, target_words = part.source.split(), part.text.split()
    if part.alignment is None:
        return [(i, i) for i in range(len(words))] if part.source.strip() == part.text.strip() else []
    # Normalizing a text, as a bundle may, can join or part its words.
    read, written = max(1, len(part.alignment.source)), max(1, len(part.alignment.target))
    links = [(i * len(words) // read, j * len(target_words) // written) for i, j in part.alignment.links]
    copies = _copied_words(words, target_words)
    sources, targets = {i for i, _ in copies}, {j for _, j in copies}
    return [(i, j) for i, j in links if i not in sources and j not in targets] + copies


def _copied_words(words: Sequence[str], target_words: Sequence[str]) -> list[WordLink]:
    """Names, numbers and placeholders that stand once in the source, and those in the translation that equal them.

    These belong together, whatever the model attended to. A word in small letters may mean something else there.
    """
    cores, target_cores = ([word.strip(_SIGNS_AROUND) for word in some] for some in (words, target_words))
    counts = Counter(cores)
    copied = {
        core: i
        for i, core in enumerate(cores)
        if counts[core] == 1 and len(core) > 1 and not (core.isalpha() and core.islower())
    }
    return [(copied[core], j) for j, core in enumerate(target_cores) if core in copied]


def _reasons(
    unit: TranslationUnit, text: str, marks: Sequence[Mark], parts: Sequence[Translation], min_confidence: float
) -> Iterator[str]:
    flags = {flag for part in parts for flag in part.flags}
    source, target = _without_opaque(unit.text, unit.marks, unit.opaque), _without_opaque(text, marks, unit.opaque)
    if (
        spans_differ(source, target, _KEPT_SPANS)
        or code_signs_differ(source, target)
        or numbers_are_lost(source, target)
        or any(target.count(sign) < source.count(sign) for sign in unit.signs)
    ):
        flags.add("wrong_spans")  # whatever the search was told to copy
    yield from (reason for flag, reason in _REASONS.items() if flag in flags)
    if _touching(text) - _touching(unit.text):
        yield "a placeholder touches a word"
    yield from unit.reasons
    if any(part.source.strip() and not part.text.strip() for part in parts):
        yield "the translation of a sentence is empty"
    confidence = min((part.confidence for part in parts), default=0.0)
    if confidence < min_confidence:
        yield f"low confidence ({confidence:.2f})"
    if _empty_tags(text, marks) - _empty_tags(unit.text, unit.marks):
        yield "a tag has lost its text"


def _without_opaque(text: str, marks: Sequence[Mark], opaque: Collection[int]) -> str:
    """The text without what is inside opaque tags, which is written as it was."""
    ends = {mark.tag: mark.at for mark in marks if mark.kind == "close"}
    parts, position = [], 0
    for mark in marks:
        if mark.tag in opaque and mark.kind == "open":
            parts.append(text[position : mark.at])
            position = ends[mark.tag]
    return " ".join([*parts, text[position:]])


def _separate_placeholders(source: str, text: str) -> str:
    """A translation with a blank between a word and a placeholder that touches none on that side in the source."""
    as_in_source = _touching(source)
    for one in reversed(list(iter_spans(text, ("placeholders",)))):
        span, start, end = one.text, one.start, one.end
        allowed = [any(same[side] for same in as_in_source if same[0] == span) for side in (1, 2)]
        before, after = _touched_sides(text, start, end)
        if span in source and after and not allowed[1]:
            text = f"{text[:end]} {text[end:]}"
        if span in source and before and not allowed[0]:
            text = f"{text[:start]} {text[start:]}"
    return text


def _touching(text: str) -> Counter[tuple[str, bool, bool]]:
    """The placeholders beside a letter or digit without a blank between: each with the sides where that is so."""
    touching = Counter[tuple[str, bool, bool]]()
    for span in iter_spans(text, ("placeholders",)):
        sides = _touched_sides(text, *span.bounds)
        touching[span.text, *sides] += any(sides)
    return +touching


def _touched_sides(text: str, start: int, end: int) -> tuple[bool, bool]:
    """Whether a letter or digit is directly before, and directly after, some characters."""
    return start > 0 and is_in_word(text[start - 1]), end < len(text) and is_in_word(text[end])


def _empty_tags(text: str, marks: Sequence[Mark]) -> set[int]:
    starts = {mark.tag: mark.at for mark in marks if mark.kind == "open"}
    return {mark.tag for mark in marks if mark.kind == "close" and not text[starts[mark.tag] : mark.at].strip()}
