"""Translate the texts of a request, plain or with tags, each with the model for its language, sentence by sentence."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ...errors import InputError
from ...translator import Alignment, Translation
from ...translator.translation import join_alignments, ordered_flags
from ..documents import Document, DocumentOptions, read_document
from ..documents.document_translation import (
    DocumentPlan,
    finish_document,
    locate_refusal,
    plan_document,
)
from ..documents.unit import NO_RULES, TagRules
from ..documents.xml_text import read_xml_text
from .batching import TranslationOptions
from .events import Progress
from .languages import Detection, ModelKey, is_untranslatable
from .monitoring import count_texts
from .scheduler import within
from .server_state import ServerState

_CHUNK = 64  # texts that are passed to the scheduler at once, so that other requests find room in its queue
_CHUNKS = 2  # the next chunk already waits while one is translated


class Answer(NamedTuple):
    """The translation of one text of a request, with the alternatives that the request asked for.

    `parts` are the translations that the answer consists of: one for a plain text, several for a text with tags.
    """

    text: str
    alternatives: tuple[str, ...]
    parts: tuple[Translation, ...]

    @property
    def score(self) -> float:
        """The mean log-probability of a token, in nats; 0 if nothing was decoded."""
        return sum(part.log_probability for part in self.parts) / max(sum(part.tokens for part in self.parts), 1)

    @property
    def flags(self) -> list[str]:
        """The flags of all parts (`translator.translation.Flag`)."""
        return list(ordered_flags({flag for part in self.parts for flag in part.flags}))

    @property
    def alignment(self) -> dict[str, object]:
        """The words of the source and of the translation, and (i, j) for each pair that belongs together."""
        return (join_alignments(self.parts) or Alignment((), (), ()))._asdict()


@dataclass(frozen=True, slots=True)
class Markup:
    """The tags of a text. In XML, line breaks are kept with `keep_lines`; otherwise they are blanks, as in HTML."""

    kind: Literal["html", "xml"] = "html"
    rules: TagRules = NO_RULES
    keep_lines: bool = False

    def read(self, text: str, key: ModelKey | None = None) -> Document:
        """Read the units of a text, to translate it between the languages of `key`, if these are known."""
        source, target = key or ("", "")
        if self.kind == "xml":
            return read_xml_text(text, self.rules, keep_lines=self.keep_lines, source_language=source)
        options = DocumentOptions(target, "utf-8", tags=self.rules, source_language=source)
        # Zero bytes are dropped, as in plain texts, because `read_document` would refuse them.
        return read_document(text.replace("\0", "").encode(), "html", options, name="the text")


async def detect_sources(
    server: ServerState, texts: list[str], target: str, markup: Markup | None = None
) -> list[Detection]:
    """Choose the language of each text as `Detector.find_source` does, by the parts that are translated.

    Tags, addresses and scripts are in no language, so the English words in them must not count.
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
) -> list[Answer]:
    """Translate each text from its language. Texts in the target language, or without words, stay unchanged."""
    answers: list[Answer | None] = [
        Answer(text, (), ()) if server.models.is_same(source, target) or is_untranslatable(text) else None
        for text, source in zip(texts, sources, strict=True)
    ]
    by_source: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        if answers[number] is None:
            by_source.setdefault(source, []).append(number)
    # Refuses languages before any text is translated.
    keys = {source: server.models.pair(source, target) for source in by_source}
    async with within(server.config.request_timeout):
        for source, numbers in by_source.items():
            chosen = [texts[number] for number in numbers]
            key = keys[source]
            if markup is None:
                some = await translate_plain(server, key, chosen, options)
            else:
                some = await translate_markup(server, key, chosen, options, markup)
            for number, answer in zip(numbers, some, strict=True):
                answers[number] = answer
    return [answer for answer in answers if answer is not None]


async def translate_plain(
    server: ServerState, key: ModelKey, texts: Sequence[str], options: TranslationOptions
) -> list[Answer]:
    """Translate plain texts. Asking for alternatives does not change a result. Equal texts are translated once."""
    unique = list(dict.fromkeys(texts))
    count_texts(unique)
    plain = translate_in_chunks(server, key, unique, replace(options, alternatives=0))
    if not options.alternatives:
        answers = [Answer(one.text, (), (one,)) for one in await plain]
    else:
        # Ask for one more, because the alternatives include the translation itself.
        wider = replace(options, alternatives=options.alternatives + 1)
        running = asyncio.create_task(translate_in_chunks(server, key, unique, wider, wait=True))
        try:
            best, others = await plain, await running
        finally:
            running.cancel()
        answers = [_with_alternatives(*both, options.alternatives) for both in zip(best, others, strict=True)]
    by_text = dict(zip(unique, answers, strict=True))
    return [by_text[text] for text in texts]


async def translate_markup(
    server: ServerState, key: ModelKey, texts: Sequence[str], options: TranslationOptions, markup: Markup
) -> list[Answer]:
    """Translate texts with tags, which are placed by the alignment. There are no alternatives."""
    translator = await server.scheduler.translator(key)

    def plan(text: str) -> DocumentPlan:
        return plan_document(
            markup.read(text, key),
            translator,
            languages=(key.source, key.target),
            split_sentences=options.split_sentences,
        )

    plans = [await asyncio.to_thread(plan, text) for text in texts]
    count_texts(all_sentences(plans))
    translations = await translate_plans(server, key, plans, replace(options, alternatives=0))
    answers = []
    for one in plans:
        parts = tuple(translations[text] for text in (*one.aligned, *one.plain))
        translated = await asyncio.to_thread(finish_document, one, translations)
        answers.append(Answer(translated.data.decode(), (), parts))
    return answers


async def translate_in_chunks(
    server: ServerState,
    key: ModelKey,
    texts: Sequence[str],
    options: TranslationOptions,
    on_progress: Callable[[int], None] = lambda _: None,
    *,
    wait: bool = False,
) -> list[Translation]:
    """Translate many texts, passing them to the scheduler in chunks.

    `on_progress` is called with the number of texts in each finished chunk. If the queue is full, the first chunk is
    refused, unless `wait` is set; later chunks always wait. The `line` of an `InputError` is the number of the text
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
    """Translate each sentence of some documents. Sentences in units with tags get alignments."""
    aligned = list(dict.fromkeys(text for plan in plans for text in plan.aligned))
    plain = list(dict.fromkeys(text for plan in plans for text in plan.plain))
    translations: dict[str, Translation] = {}
    done, total = 0, len(aligned) + len(plain)

    def count(finished: int) -> None:
        nonlocal done
        done += finished
        on_progress(done, total)

    count(0)
    options = replace(options, split_sentences=False)  # the texts are already sentences
    for texts, some in ((plain, options), (aligned, replace(options, align="words"))):
        try:
            answers = await translate_in_chunks(server, key, texts, some, count, wait=bool(translations))
        except InputError as error:
            raise locate_refusal(plans, texts, error) from error
        translations |= zip(texts, answers, strict=True)
    return translations


def all_sentences(plans: Sequence[DocumentPlan]) -> list[str]:
    return list(dict.fromkeys(text for plan in plans for text in (*plan.aligned, *plan.plain)))


def _with_alternatives(best: Translation, other: Translation, count: int) -> Answer:
    texts = dict.fromkeys(one.text for one in (other, *other.alternatives) if one.text != best.text)
    return Answer(best.text, tuple(texts)[:count], (best,))
