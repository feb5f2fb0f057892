"""Translate a document: all sentences of its units together; then place the tags on the translations."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple, Protocol

from ...errors import InputError
from ...text.sentences import CharSpan, gap_between, sentence_spans, whole_span
from ...text.spans import iter_spans
from ...translator import Translator
from ...translator.constraints import codes_differ, spans_differ
from ...translator.placeholders import touching
from ...translator.split_texts import with_tag
from ...translator.translation import Flag, Translation
from . import Document, Mark, TranslationUnit, UnitTranslation
from .inline import WordLink, place_sentence_marks

MIN_CONFIDENCE = -1.0  # mean log-probability of a token, in nats
MOST_TAGS = 500  # in a unit; placing tags takes time in proportion to the square of their number


class TextTranslator(Protocol):
    """The methods of a `Translator` that a document needs."""

    def translations(
        self,
        texts: Iterable[str],
        *,
        align: str | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> Iterator[Translation]:
        """Translate each text, with an alignment of words if `align` is "words"."""


class ReviewItem(NamedTuple):
    """A unit that a person should look at, and the reason. `text` is None if the source was left unchanged."""

    key: str
    source: str
    text: str | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentTranslation:
    """The bytes of a translated document, and how many of its units were translated, kept or refused.

    `kept` units already had a translation or needed none. `refused` units could not be translated and are unchanged.
    """

    data: bytes
    units: int
    translated: int
    kept: int
    refused: int
    review: tuple[ReviewItem, ...]


class DocumentPlan(NamedTuple):
    """The sentences of a document to translate, each listed once. Those in units with tags also need alignments.

    `sentences` are the sentences of each unit, as positions in its text; () for a unit that is kept. `tags` are the
    target-language tags that units begin with; the model reads the tag before each sentence of the unit.
    `target_language` decides whether there are blanks between translations.
    """

    document: Document
    sentences: tuple[tuple[CharSpan, ...], ...]
    tags: tuple[str, ...]
    aligned: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    target_language: str = ""
    checks_codes: bool = True

    def texts(self) -> Iterator[list[str]]:
        """Yield each sentence of each unit, in the form that the model reads."""
        for unit, spans, tag in zip(self.document.units, self.sentences, self.tags, strict=True):
            yield [with_tag(unit.text[start:end], tag) for start, end in spans]


def translate_document(
    document: Document,
    translator: TextTranslator,
    *,
    min_confidence: float = MIN_CONFIDENCE,
    skip_refused: bool = False,
) -> DocumentTranslation:
    """Translate the units that have no translation yet.

    Each sentence and each line of a unit is translated by itself. Line breaks are kept, and so are blanks between
    sentences if the target language uses them. Sentences end by the rules of the translator's source language, if it
    names one. A unit is marked for review if the confidence of its least sure sentence is below `min_confidence`.
    Refuses a sentence that the model cannot read; with `skip_refused`, its unit stays untranslated.
    """
    plan = plan_document(document, translator)
    answers = translate_plan(plan, translator, skip_refused=skip_refused)
    return finish_document(plan, answers, min_confidence=min_confidence)


def translate_plan(
    plan: DocumentPlan,
    translator: TextTranslator,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
    skip_refused: bool = False,
) -> dict[str, Translation | InputError]:
    """Translate the sentences of a plan.

    `on_progress` is called with the number of sentences that each batch finished.
    """
    answers: dict[str, Translation | InputError] = {}
    for texts, align in ((plan.aligned, "words"), (plan.plain, None)):
        refused: dict[int, InputError] = {}

        def refuse(error: InputError, refused: dict[int, InputError] = refused) -> None:
            refused[error.line or 0] = error

        translate = translator.translations
        if isinstance(translator, Translator):  # other translators do not split sentences again anyway
            translate = partial(translator.translations, split_sentences=False)
        translations = translate(
            texts, align=align, on_progress=on_progress, on_refused=refuse if skip_refused else None
        )
        try:
            answers |= zip(texts, translations, strict=True)
        except InputError as error:
            raise locate_refusal([plan], texts, error) from error
        answers |= {texts[number - 1]: error for number, error in refused.items()}
    return answers


def locate_refusal(plans: Iterable[DocumentPlan], texts: Sequence[str], error: InputError) -> InputError:
    """Make the error for text number `error.line` of `texts`, with the key of the first unit that contains it."""
    sentence = texts[error.line - 1] if error.line else None
    units = (
        unit for plan in plans for unit, some in zip(plan.document.units, plan.texts(), strict=True) if sentence in some
    )
    key = next((unit.key for unit in units if unit.key), "") if sentence is not None else ""
    return InputError(f"{key}: {error}" if key else str(error))


def plan_document(
    document: Document,
    translator: TextTranslator | None = None,
    *,
    languages: tuple[str, str] | None = None,
    split_sentences: bool = True,
) -> DocumentPlan:
    """Find the texts of a document to translate: the sentences of its units, or whole units.

    `languages` are source and target; a target language that the document was read with takes precedence. `tag_of`
    returns the target-language tag at the beginning of a text, as `Translator.language_tag` does.
    """
    source, target = getattr(translator, "languages", ("", "")) if languages is None else languages
    split_sentences = split_sentences and getattr(translator, "splits_sentences", True)
    tag_of = getattr(translator, "language_tag", lambda _: "")
    spans = tuple(
        () if unit.translation is not None or _has_too_many_tags(unit)
        else sentence_spans(unit.text, _opaque_spans(unit), language=source)
        if split_sentences
        else whole_span(unit.text)
        for unit in document.units
    )  # fmt: skip
    tags = tuple(tag_of(unit.text) for unit in document.units)
    plan = DocumentPlan(
        document,
        spans,
        tags,
        target_language=document.target_language or target,
        checks_codes=getattr(translator, "checks_codes", True),
    )
    aligned, plain = dict[str, None](), dict[str, None]()
    for unit, texts in zip(document.units, plan.texts(), strict=True):
        (aligned if unit.marks else plain).update(dict.fromkeys(texts))
    return plan._replace(aligned=tuple(aligned), plain=tuple(text for text in plain if text not in aligned))


def finish_document(
    plan: DocumentPlan,
    answers: Mapping[str, Translation | InputError],
    *,
    min_confidence: float = MIN_CONFIDENCE,
) -> DocumentTranslation:
    """Write the document with the answers to its plan's sentences: translations, or errors for refused ones."""
    review: list[ReviewItem] = []
    results: list[UnitTranslation | None] = []
    kept = refused = 0
    units = zip(plan.document.units, plan.sentences, plan.tags, plan.texts(), strict=True)
    for number, (unit, spans, tag, texts) in enumerate(units):
        parts = [answers[text] for text in texts]
        errors = [part for part in parts if isinstance(part, InputError)]
        result = None
        if unit.translation is None and _has_too_many_tags(unit):
            refused += 1
            reason = f"it has {_count_tags(unit):,} tags; at most {MOST_TAGS} are placed. Divide it into several texts"
            review.append(ReviewItem(unit.key, unit.text, None, (reason,)))
        elif not spans:
            kept += 1
        elif errors:
            refused += 1
            review.append(ReviewItem(unit.key, unit.text, None, tuple(dict.fromkeys(str(error) for error in errors))))
        else:
            result = unit_translation(
                unit,
                spans,
                [part for part in parts if isinstance(part, Translation)],
                min_confidence,
                plan.target_language,
                tag,
                checks_codes=plan.checks_codes,
            )
            if problem := plan.document.problem(number, result):
                refused += 1
                review.append(ReviewItem(unit.key, unit.text, None, (problem,)))
                result = None
            elif result.reasons:
                review.append(ReviewItem(unit.key, unit.text, result.text, result.reasons))
        results.append(result)
    left_out = plan.document.left_out
    review += [ReviewItem(one.key, one.text, None, (one.reason,)) for one in left_out]
    refused += len(left_out)
    count = len(results) + len(left_out)
    return DocumentTranslation(
        plan.document.write(results), count, count - kept - refused, kept, refused, tuple(review)
    )


def _count_tags(unit: TranslationUnit) -> int:
    return sum(mark.kind != "close" for mark in unit.marks)


def _has_too_many_tags(unit: TranslationUnit) -> bool:
    return _count_tags(unit) > MOST_TAGS


def _opaque_spans(unit: TranslationUnit) -> list[CharSpan]:
    """Find the parts of a unit that the model reads but that are not translated, such as code."""
    ends = {mark.tag: mark.at for mark in unit.marks if mark.kind == "close"}
    return [(mark.at, ends[mark.tag]) for mark in unit.marks if mark.tag in unit.opaque and mark.kind == "open"]


_REASONS: dict[Flag, str] = {
    "repeats": "the first translation repeated itself",
    "wrong_spans": "a placeholder, address, number or sign differs",
    "unfinished": "the translation is cut off",
    "long": "longer than the sentences of the training data",
    "unknown": "with characters or words that the training data did not have",
}
_SIGNS_AROUND = ".,;:!?…()[]\"'“”‘’«»„¿¡"
# Every translation must contain these spans as its source does.
_KEPT_SPANS = ("urls", "emails", "tags", "placeholders", "emoji")


def unit_translation(
    unit: TranslationUnit,
    spans: Sequence[CharSpan],
    parts: Sequence[Translation],
    min_confidence: float,
    target_language: str = "",
    language_tag: str = "",
    *,
    checks_codes: bool = True,
) -> UnitTranslation:
    """Make a unit's translation from the translations of its sentences, with reasons for a review.

    `spans` are the positions of the sentences in the unit's text. The text begins with `language_tag`, which no
    translation has.
    """
    text = ""
    marks: list[Mark] = []
    position = 0
    remaining = _marks_by_sentence(unit.marks, spans)
    for (start, end), part, (before, inside) in zip(spans, parts, remaining[:-1], strict=True):
        target = part.text.strip()
        gap = gap_between(unit.text[position:start], target_language) if position else unit.text[:start]
        marks += [mark._replace(at=len(text) + min(mark.at - position, len(gap))) for mark in before]
        text += gap
        local = [mark._replace(at=mark.at - start) for mark in inside]
        links = _word_links(part, unit.text[start:end])
        placed = place_sentence_marks(unit.text[start:end], local, target, links, unit.opaque)
        marks += [mark._replace(at=len(text) + mark.at) for mark in placed]
        text += target
        position = end
    marks += [mark._replace(at=len(text) + mark.at - position) for mark in remaining[-1][0]]
    text += unit.text[position:]
    marks = list(_outside_spans(unit, text, marks))
    reasons = _reasons(unit, text, marks, parts, min_confidence, language_tag, checks_codes=checks_codes)
    return UnitTranslation(text, tuple(marks), tuple(reasons))


def _marks_by_sentence(marks: Sequence[Mark], spans: Sequence[CharSpan]) -> list[tuple[list[Mark], list[Mark]]]:
    """List the marks before and in each sentence and, last, the marks after the final sentence.

    A mark that closes at the end of a sentence belongs to that sentence. A mark that opens there does not, and neither
    does a break or a note after it.
    """
    groups: list[tuple[list[Mark], list[Mark]]] = []
    position = 0
    for start, end in spans:
        before: list[Mark] = []
        inside: list[Mark] = []
        while position < len(marks) and (marks[position].at < end or marks[position][::2] == (end, "close")):
            mark = marks[position]
            is_before = mark.at < start or (mark.at == start and mark.kind == "close" and not inside)
            (before if is_before else inside).append(mark)
            position += 1
        groups.append((before, inside))
    return [*groups, (list(marks[position:]), [])]


def _outside_spans(unit: TranslationUnit, text: str, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Move marks out of placeholders and addresses, unless the source has marks inside them."""

    def around(mark: Mark, spans: Sequence[CharSpan]) -> CharSpan | None:
        before = bisect_left(spans, (mark.at, 0))  # the spans are sorted and do not overlap
        return spans[before - 1] if before and mark.at < spans[before - 1][1] else None

    source_spans, spans = ([span.bounds for span in iter_spans(one, _KEPT_SPANS)] for one in (unit.text, text))
    if any(around(mark, source_spans) for mark in unit.marks):
        return tuple(marks)
    moved: list[Mark] = []
    for span, group in groupby(marks, key=lambda mark: around(mark, spans)):
        inside = list(group)
        # Move all marks to one side, which keeps their order.
        at = span and (span[0] if inside[0].kind == "open" else span[1])
        moved += [mark if at is None else mark._replace(at=at) for mark in inside]
    return tuple(moved)


def _word_links(part: Translation, sentence: str) -> list[WordLink]:
    """Return the links of a sentence's alignment, with words counted as in the document's texts."""
    # Words of a target-language tag that only the model reads.
    before = len(part.source.split()) - len(sentence.split())
    return [(i - before, j) for i, j in _links_as_read(part) if i >= before]


def _links_as_read(part: Translation) -> list[WordLink]:
    words, target_words = part.source.split(), part.text.split()
    if part.alignment is None:
        return [(i, i) for i in range(len(words))] if part.source.strip() == part.text.strip() else []
    # Normalizing a text can join or split its words.
    read, written = max(1, len(part.alignment.source)), max(1, len(part.alignment.target))
    links = [(i * len(words) // read, j * len(target_words) // written) for i, j in part.alignment.links]
    copies = _copied_words(words, target_words)
    sources, targets = {i for i, _ in copies}, {j for _, j in copies}
    return [(i, j) for i, j in links if i not in sources and j not in targets] + copies


def _copied_words(words: Sequence[str], target_words: Sequence[str]) -> list[WordLink]:
    """Link names, numbers and placeholders that occur once in the source to their copies in the translation.

    The attention of the model does not matter here. Words in small letters are not linked, because an equal word in the
    other language may mean something else.
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
    unit: TranslationUnit,
    text: str,
    marks: Sequence[Mark],
    parts: Sequence[Translation],
    min_confidence: float,
    language_tag: str,
    *,
    checks_codes: bool,
) -> Iterator[str]:
    flags = {flag for part in parts for flag in part.flags}
    source, target = _without_opaque(unit.text, unit.marks, unit.opaque), _without_opaque(text, marks, unit.opaque)
    source = source.removeprefix(language_tag)
    if (
        spans_differ(source, target, _KEPT_SPANS)
        or (checks_codes and codes_differ(source, target))
        or any(target.count(sign) < source.count(sign) for sign in unit.signs)
    ):
        flags.add("wrong_spans")  # whatever the search was told to copy
    yield from (reason for flag, reason in _REASONS.items() if flag in flags)
    if touching(text) - touching(unit.text):
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
    """Return a text without the content of opaque tags, which is written unchanged."""
    ends = {mark.tag: mark.at for mark in marks if mark.kind == "close"}
    parts, position = [], 0
    for mark in marks:
        if mark.tag in opaque and mark.kind == "open":
            parts.append(text[position : mark.at])
            position = ends[mark.tag]
    return " ".join([*parts, text[position:]])


def _empty_tags(text: str, marks: Sequence[Mark]) -> set[int]:
    starts = {mark.tag: mark.at for mark in marks if mark.kind == "open"}
    return {mark.tag for mark in marks if mark.kind == "close" and not text[starts[mark.tag] : mark.at].strip()}
