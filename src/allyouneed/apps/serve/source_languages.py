"""The texts of a request by their languages: detected, and each language through its own model."""

import asyncio

from .detection import Detection, detect_source, is_untranslatable
from .document_requests import Markup, translate_markup
from .request_texts import Answer, translate_plain
from .scheduler import within
from .server_state import ServerState
from .translation_options import TranslationOptions


async def detect_sources(server: ServerState, texts: list[str], target: str) -> list[Detection]:
    """What to translate each text from, as `detect_source` tells it."""

    def detect_all() -> list[Detection]:
        return [detect_source(server.detector, server.models, text, target) for text in texts]

    return await asyncio.to_thread(detect_all)


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
        Answer(text, (), ()) if source == target or is_untranslatable([text]) else None
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
