"""Texts of a request, plain or with tags, each through the model of its language, sentence by sentence."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ...errors import InputError
from ...text.sentences import CharSpan, gap_between
from ...translator import Alignment, Translation
from ...translator.translation import join_alignments, ordered_flags
from ..documents import Document, DocumentOptions, read_document
from ..documents.document_translation import (
    DocumentPlan,
    finish_document,
    locate_refusal,
    plan_document,
    sentence_spans,
)
from ..documents.unit import NO_RULES, TagRules
from ..documents.xml_text import read_xml_text
from .batching import TranslationOptions
from .events import Progress
from .languages import Detection, ModelKey, is_untranslatable
from .monitoring import count_texts
from .scheduler import within
from .server_state import ServerState

_CHUNK = 64  # texts handed to the scheduler at once, so that other requests find room in its queue
_CHUNKS = 2  # the next chunk waits already while one is translated


class Answer(NamedTuple):
    """The translation of one text of a request, with the alternatives that it asked for.

    `parts` are the translations that it is made of, line by line.
    """

    text: str
    alternatives: tuple[str, ...]
    parts: tuple[Translation, ...]

    @property
    def score(self) -> float:
        """The mean log-probability of a token, in nats; 0 where nothing was decoded."""
        return sum(part.log_probability for part in self.parts) / max(sum(part.tokens for part in self.parts), 1)

    @property
    def flags(self) -> list[str]:
        """The flags of all parts (`translator.translation.Flag`)."""
        return list(ordered_flags({flag for part in self.parts for flag in part.flags}))

    @property
    def alignment(self) -> dict[str, object]:
        """The words of the source, those of the translation, and (i, j) for each pair that belongs together."""
        return (join_alignments(self.parts) or Alignment((), (), ()))._asdict()


@dataclass(frozen=True, slots=True)
class Markup:
    """The tags of a text. In XML, `keep_lines` keeps line breaks, which else are blanks as in HTML."""

    kind: Literal["html", "xml"] = "html"
    rules: TagRules = NO_RULES
    keep_lines: bool = False

    def read(self, text: str, key: ModelKey | None = None) -> Document:
        """The units of a text to translate from and into the languages of `key`, if these are known."""
        if self.kind == "xml":
            return read_xml_text(text, self.rules, keep_lines=self.keep_lines)
        source, target = key or ("", "")
        options = DocumentOptions(target, "utf-8", tags=self.rules, source_language=source)
        # Zero bytes are dropped, as from plain texts; `read_document` would refuse them.
        return read_document(text.replace("\0", "").encode(), "html", options, name="the text")


async def detect_sources(
    server: ServerState, texts: list[str], target: str, markup: Markup | None = None
) -> list[Detection]:
    """What to translate each text from, as `Detector.find_source` tells it, by what is translated of it.

    Tags, addresses and scripts are in no language; that they are made of English words must not count.
    """

    def detect(text: str) -> Detection:
        read = text if markup is None else "\n".join(unit.text for unit in markup.read(text).units)
        return server.detector.find_source(read, target)

    return await asyncio.to_thread(lambda: [detect(text) for text in texts])


async def translate_each(
    server: ServerState,
    texts: list[str],
    sources: list[str],
    target: str,
    options: TranslationOptions,
    *,
    markup: Markup | None = None,
    split_sentences: bool = True,
) -> list[Answer]:
    """The translation of each text from its language; texts in the target language or without words are unchanged."""
    answers: list[Answer | None] = [
        Answer(text, (), ()) if server.models.is_same(source, target) or is_untranslatable(text) else None
        for text, source in zip(texts, sources, strict=True)
    ]
    by_source: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        if answers[number] is None:
            by_source.setdefault(source, []).append(number)
    keys = {source: server.models.pair(source, target) for source in by_source}  # refused before any is translated
    async with within(server.config.request_timeout):
        for source, numbers in by_source.items():
            chosen = [texts[number] for number in numbers]
            key = keys[source]
            if markup is None:
                some = await translate_plain(server, key, chosen, options, split_sentences=split_sentences)
            else:
                some = await translate_markup(server, key, chosen, options, markup, split_sentences=split_sentences)
            for number, answer in zip(numbers, some, strict=True):
                answers[number] = answer
    return [answer for answer in answers if answer is not None]


async def translate_plain(
    server: ServerState,
    key: ModelKey,
    texts: Sequence[str],
    options: TranslationOptions,
    *,
    split_sentences: bool = True,
) -> list[Answer]:
    """Translate plain texts sentence by sentence, or line by line; the line breaks between them stay.

    Texts of several parts have alternatives too: the n-th joins the n-th of each part.
    """
    spans = [
        tuple(sentence_spans(text, language=key.source) if split_sentences else _line_spans(text)) for text in texts
    ]
    parts = [text[start:end] for text, some in zip(texts, spans, strict=True) for start, end in some]
    translations = iter(await translate_parts(server, key, parts, options))
    return [
        _join(text, some, [next(translations) for _ in some], options, key.target)
        for text, some in zip(texts, spans, strict=True)
    ]


async def translate_markup(
    server: ServerState,
    key: ModelKey,
    texts: Sequence[str],
    options: TranslationOptions,
    markup: Markup,
    *,
    split_sentences: bool = True,
) -> list[Answer]:
    """Translate texts with tags, which go where the alignment puts them. They have no alternatives."""

    def plan(text: str) -> DocumentPlan:
        return plan_document(markup.read(text, key), (key.source, key.target), split_sentences=split_sentences)

    plans = [await asyncio.to_thread(plan, text) for text in texts]
    count_texts(all_sentences(plans))
    translations = await translate_plans(server, key, plans, replace(options, alternatives=0))
    answers = []
    for one in plans:
        parts = tuple(translations[text] for text in (*one.aligned, *one.plain))
        translated = await asyncio.to_thread(finish_document, one, translations)
        answers.append(Answer(translated.data.decode(), (), parts))
    return answers


async def translate_parts(
    server: ServerState, key: ModelKey, parts: Sequence[str], options: TranslationOptions
) -> list[Translation]:
    """The translation of each part, the same with alternatives and without; equal parts are translated once."""
    unique = list(dict.fromkeys(parts))
    count_texts(unique)
    plain = translate_in_chunks(server, key, unique, replace(options, alternatives=0))
    if not options.alternatives:
        return _in_order(parts, unique, await plain)
    # One more, because the translation itself is among them.
    wider = replace(options, alternatives=options.alternatives + 1)
    running = asyncio.create_task(translate_in_chunks(server, key, unique, wider, wait=True))
    try:
        best, others = await plain, await running
    finally:
        running.cancel()
    return _in_order(parts, unique, [_with_alternatives(*both) for both in zip(best, others, strict=True)])


async def translate_in_chunks(
    server: ServerState,
    key: ModelKey,
    texts: Sequence[str],
    options: TranslationOptions,
    on_progress: Callable[[int], None] = lambda _: None,
    *,
    wait: bool = False,
) -> list[Translation]:
    """The translations of many texts, which are handed to the scheduler some after the other.

    `on_progress` gets the number of texts of each part that is finished. Where the queue is full, the first texts are
    refused, unless they are to `wait`; the others always wait. The `line` of an `InputError` is the number of the text
    that the model cannot read.
    """
    slots = asyncio.Semaphore(_CHUNKS)

    async def translate(start: int) -> list[Translation]:
        async with slots:
            some = texts[start : start + _CHUNK]
            try:
                finished = await server.scheduler.translate(key, some, options, wait=wait or start > 0)
            except InputError as error:
                raise InputError(str(error), line=error.line and start + error.line) from error
        on_progress(len(finished))
        return finished

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(translate(start)) for start in range(0, len(texts), _CHUNK)]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [one for task in tasks for one in task.result()]


async def translate_plans(
    server: ServerState,
    key: ModelKey,
    plans: Sequence[DocumentPlan],
    options: TranslationOptions,
    on_progress: Progress = lambda *_: None,
) -> dict[str, Translation]:
    """The translation of each sentence of some documents; those in units with tags have alignments."""
    aligned = list(dict.fromkeys(text for plan in plans for text in plan.aligned))
    plain = list(dict.fromkeys(text for plan in plans for text in plan.plain))
    translations: dict[str, Translation] = {}
    done, total = 0, len(aligned) + len(plain)

    def count(finished: int) -> None:
        nonlocal done
        done += finished
        on_progress(done, total)

    count(0)
    for texts, some in ((plain, options), (aligned, replace(options, align="words"))):
        try:
            answers = await translate_in_chunks(server, key, texts, some, count, wait=bool(translations))
        except InputError as error:
            raise locate_refusal(plans, texts, error) from error
        translations |= zip(texts, answers, strict=True)
    return translations


def all_sentences(plans: Sequence[DocumentPlan]) -> list[str]:
    return list(dict.fromkeys(text for plan in plans for text in (*plan.aligned, *plan.plain)))


def _in_order(parts: Sequence[str], unique: Sequence[str], translations: Sequence[Translation]) -> list[Translation]:
    by_part = dict(zip(unique, translations, strict=True))
    return [by_part[part] for part in parts]


def _with_alternatives(best: Translation, other: Translation) -> Translation:
    return replace(best, alternatives=tuple(one for one in (other, *other.alternatives) if one.text != best.text))


def _join(
    text: str, spans: Sequence[CharSpan], parts: Sequence[Translation], options: TranslationOptions, target: str
) -> Answer:
    """The translations of the parts at `spans` of a text, between blanks as the target language has them."""

    def fill(translated: Sequence[str]) -> str:
        ends = [0, *(end for _, end in spans)]
        blanks = [text[end:start] for end, (start, _) in zip(ends, spans, strict=False)]
        blanks[1:] = [gap_between(blank, target) for blank in blanks[1:]]
        pairs = zip(blanks, translated, strict=True)
        return "".join(piece for pair in pairs for piece in pair) + text[ends[-1] :]

    joined = fill([part.text for part in parts])
    variants = [
        fill([_variant(part, number) for part in parts])
        for number in range(max((len(part.alternatives) for part in parts), default=0))
    ]
    alternatives = tuple(dict.fromkeys(variant for variant in variants if variant != joined))
    return Answer(joined, alternatives[: options.alternatives], tuple(parts))


def _line_spans(text: str) -> list[CharSpan]:
    return [match.span() for match in re.finditer(r"[^\s](?:[^\r\n]*[^\s])?", text)]


def _variant(part: Translation, number: int) -> str:
    return part.alternatives[number].text if number < len(part.alternatives) else part.text
