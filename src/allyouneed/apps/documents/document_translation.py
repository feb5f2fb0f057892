"""A document → its translation: the sentences of all units, translated together, and the tags placed on them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...errors import InputError
from ...text.sentences import CharSpan, cut
from ...text.spans import iter_spans
from ...translator.translation import Translation
from ..documents import Document, TranslationUnit, UnitTranslation
from .unit_translation import unit_translation

MIN_CONFIDENCE = -1.0  # mean log-probability of a token, in nats


class TextTranslator(Protocol):
    """What a document needs of a `Translator`."""

    def translations(
        self,
        texts: Iterable[str],
        *,
        align: str | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
        on_refused: Callable[[InputError], None] | None = None,
    ) -> Iterator[Translation]:
        """The translation of each text, with an alignment of "words" if `align` asks for it."""


class ReviewItem(NamedTuple):
    """A unit that a person should look at, and why. `text` is None where the source was left as it is."""

    key: str
    source: str
    text: str | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentTranslation:
    """The bytes of a translated document, and what became of its units, in numbers.

    `kept` had a translation already, or nothing to translate; `refused` could not be translated and are as in the
    source.
    """

    data: bytes
    units: int
    translated: int
    kept: int
    refused: int
    review: tuple[ReviewItem, ...]


class DocumentPlan(NamedTuple):
    """A document's sentences to translate, none twice: those of units with tags, which need alignments, and the rest.

    `sentences` are those of each unit, as characters of its text; none for a unit that is kept.
    """

    document: Document
    sentences: tuple[tuple[CharSpan, ...], ...]
    aligned: tuple[str, ...]
    plain: tuple[str, ...]


def translate_document(
    document: Document,
    translator: TextTranslator,
    *,
    min_confidence: float = MIN_CONFIDENCE,
    skip_refused: bool = False,
) -> DocumentTranslation:
    """Translate the units that have no translation yet.

    Each sentence, and each line, of a unit is translated by itself; blanks and line breaks between them stay. A
    unit whose least sure sentence has a confidence below `min_confidence` is to be reviewed. Refuses a sentence that
    the model cannot read; with `skip_refused` its unit stays untranslated.
    """
    plan = plan_document(document)
    answers = translate_plan(plan, translator, skip_refused=skip_refused)
    return finish_document(plan, answers, min_confidence=min_confidence)


def translate_plan(
    plan: DocumentPlan,
    translator: TextTranslator,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
    skip_refused: bool = False,
) -> dict[str, Translation | InputError]:
    """The answers to the sentences of a plan. `on_progress` gets the number of sentences that each batch finished."""
    answers: dict[str, Translation | InputError] = {}
    for texts, align in ((plan.aligned, "words"), (plan.plain, None)):
        refused: dict[int, InputError] = {}

        def refuse(error: InputError, refused: dict[int, InputError] = refused) -> None:
            refused[error.line or 0] = error

        translations = translator.translations(
            texts, align=align, on_progress=on_progress, on_refused=refuse if skip_refused else None
        )
        try:
            answers |= zip(texts, translations, strict=True)
        except InputError as error:
            raise locate_refusal([plan], texts, error) from error
        answers |= {texts[number - 1]: error for number, error in refused.items()}
    return answers


def locate_refusal(plans: Iterable[DocumentPlan], texts: Sequence[str], error: InputError) -> InputError:
    """The refusal of one of `texts`, which `error.line` counts from 1, with the key of the first unit that it is in."""
    sentence = texts[error.line - 1] if error.line else None
    units = (unit for plan in plans for unit in _units_with(plan, sentence))
    key = next((unit.key for unit in units if unit.key), "") if sentence is not None else ""
    return InputError(f"{key}: {error}" if key else str(error))


def plan_document(document: Document, *, split_sentences: bool = True) -> DocumentPlan:
    """What of a document is to be translated: the sentences of its units, or the units as a whole."""
    spans = tuple(
        () if unit.translation is not None
        else tuple(sentence_spans(unit.text, _opaque_spans(unit)) if split_sentences else _whole_span(unit.text))
        for unit in document.units
    )  # fmt: skip
    aligned, plain = dict[str, None](), dict[str, None]()
    for unit, some in zip(document.units, spans, strict=True):
        (aligned if unit.marks else plain).update(dict.fromkeys(unit.text[start:end] for start, end in some))
    return DocumentPlan(document, spans, tuple(aligned), tuple(text for text in plain if text not in aligned))


def finish_document(
    plan: DocumentPlan,
    answers: Mapping[str, Translation | InputError],
    *,
    min_confidence: float = MIN_CONFIDENCE,
) -> DocumentTranslation:
    """The document with the answers to the sentences of its plan: translations, or errors of those refused."""
    review: list[ReviewItem] = []
    results: list[UnitTranslation | None] = []
    kept = refused = 0
    for number, (unit, spans) in enumerate(zip(plan.document.units, plan.sentences, strict=True)):
        parts = [answers[unit.text[start:end]] for start, end in spans]
        errors = [part for part in parts if isinstance(part, InputError)]
        result = None
        if not spans:
            kept += 1
        elif errors:
            refused += 1
            review.append(ReviewItem(unit.key, unit.text, None, tuple(dict.fromkeys(str(error) for error in errors))))
        else:
            result = unit_translation(
                unit, spans, [part for part in parts if isinstance(part, Translation)], min_confidence
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
    units = len(results) + len(left_out)
    return DocumentTranslation(
        plan.document.write(results), units, units - kept - refused, kept, refused, tuple(review)
    )


def sentence_spans(text: str, opaque: Sequence[CharSpan] = ()) -> Iterator[CharSpan]:
    """The sentences of a text, (start, end) of each without the blanks around it.

    A line break ends a sentence. What ends inside a copied span, or one of `opaque`, is none.
    """
    for line in re.finditer(r"[^\r\n]+", text):
        start = line.start()
        whole = [span.bounds for span in iter_spans(line.group())]
        whole += [(first - start, last - start) for first, last in opaque]
        for sentence in cut(line.group(), lambda _: True, whole=whole):
            start = text.index(sentence, start)
            yield start, start + len(sentence)
            start += len(sentence)


def _opaque_spans(unit: TranslationUnit) -> list[CharSpan]:
    """What is read and not written, such as code."""
    ends = {mark.tag: mark.at for mark in unit.marks if mark.kind == "close"}
    return [(mark.at, ends[mark.tag]) for mark in unit.marks if mark.tag in unit.opaque and mark.kind == "open"]


def _whole_span(text: str) -> Iterator[CharSpan]:
    if text.strip():
        yield len(text) - len(text.lstrip()), len(text.rstrip())


def _units_with(plan: DocumentPlan, sentence: str | None) -> Iterator[TranslationUnit]:
    for unit, spans in zip(plan.document.units, plan.sentences, strict=True):
        if any(unit.text[start:end] == sentence for start, end in spans):
            yield unit
