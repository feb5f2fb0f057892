"""Plain texts of a request, translated sentence by sentence."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...errors import InputError
from ...text.sentences import CharSpan
from ...translator import Alignment, Translation
from ...translator.translation import join_alignments, ordered_flags
from ..documents.document_translation import sentence_spans
from .languages import ModelKey
from .request_log import count_texts
from .server_state import ServerState
from .translation_options import TranslationOptions

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


async def translate_plain(
    server: ServerState,
    key: ModelKey,
    texts: Sequence[str],
    options: TranslationOptions,
    *,
    split_sentences: bool = True,
) -> list[Answer]:
    """Translate plain texts sentence by sentence, or line by line; the blanks and line breaks between them stay.

    Texts of several parts have alternatives too: the n-th joins the n-th of each part.
    """
    spans = [tuple(sentence_spans(text) if split_sentences else _line_spans(text)) for text in texts]
    parts = [text[start:end] for text, some in zip(texts, spans, strict=True) for start, end in some]
    translations = iter(await translate_parts(server, key, parts, options))
    return [
        _join(text, some, [next(translations) for _ in some], options) for text, some in zip(texts, spans, strict=True)
    ]


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
    translations: list[Translation] = []
    running: deque[asyncio.Task[list[Translation]]] = deque()

    async def finish_first() -> None:
        try:
            finished = await running[0]
        except InputError as error:
            raise InputError(str(error), line=error.line and len(translations) + error.line) from error
        running.popleft()
        translations.extend(finished)
        on_progress(len(finished))

    try:
        for start in range(0, len(texts), _CHUNK):
            some = texts[start : start + _CHUNK]
            running.append(asyncio.create_task(server.scheduler.translate(key, some, options, wait=wait or start > 0)))
            if len(running) == _CHUNKS:
                await finish_first()
        while running:
            await finish_first()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return translations


def _in_order(parts: Sequence[str], unique: Sequence[str], translations: Sequence[Translation]) -> list[Translation]:
    by_part = dict(zip(unique, translations, strict=True))
    return [by_part[part] for part in parts]


def _with_alternatives(best: Translation, other: Translation) -> Translation:
    return replace(best, alternatives=tuple(one for one in (other, *other.alternatives) if one.text != best.text))


def _join(text: str, spans: Sequence[CharSpan], parts: Sequence[Translation], options: TranslationOptions) -> Answer:
    """The translations of the parts at `spans` of a text, between the blanks that were around them."""

    def fill(translated: Sequence[str]) -> str:
        ends = [0, *(end for _, end in spans)]
        blanks = [text[end:start] for end, (start, _) in zip(ends, spans, strict=False)]
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
