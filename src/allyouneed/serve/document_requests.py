"""A document or a piece of HTML, translated through the scheduler with the texts of all other requests."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ..documents import DocumentOptions, read_document
from ..translator import Translation
from ..translator.document_translation import DocumentPlan, finish_document, plan_document
from .models import ModelKey
from .request_texts import Answer, translate_in_chunks
from .scheduler import TranslationOptions
from .server_state import ServerState

# One file after another: a large one takes seconds, in which short requests should not wait for several.
_FILES = ThreadPoolExecutor(1, thread_name_prefix="documents")
_DETECTED_UNITS = 200  # at the beginning of a document, to tell its language


async def translate_html(
    server: ServerState, key: ModelKey, texts: Sequence[str], options: TranslationOptions
) -> list[Answer]:
    """Translate pieces of HTML, with the tags where the alignment puts them. They have no alternatives."""
    languages = DocumentOptions(source_language=key.source, target_language=key.target)
    plans = [await asyncio.to_thread(_plan, text.encode(), "html", languages) for text in texts]
    translations = await _translate_plans(server, key, plans, replace(options, alternatives=0))
    answers = []
    for plan in plans:
        parts = tuple(translations[text] for text in (*plan.aligned, *plan.plain))
        translated = await asyncio.to_thread(finish_document, plan, translations)
        answers.append(Answer(translated.data.decode(), (), parts))
    return answers


async def translate_file_content(
    server: ServerState, content: bytes, kind: str, options: DocumentOptions, glossary: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """The document in the target language of `options`. Without a source language that is detected."""
    loop = asyncio.get_running_loop()
    plan = await loop.run_in_executor(_FILES, _plan, content, kind, options)
    source, target = options.source_language, options.target_language
    if not source:
        text = "\n".join(unit.text for unit in plan.document.units[:_DETECTED_UNITS])
        detections = await asyncio.to_thread(server.detector.detect, text)
        source = detections[0].language if detections else server.models.languages()[0].code
    if source == target:
        return content
    key = server.models.pair(source, target)
    translations = await _translate_plans(server, key, [plan], TranslationOptions(glossary=glossary))
    return (await loop.run_in_executor(_FILES, finish_document, plan, translations)).data


def _plan(content: bytes, kind: str, languages: DocumentOptions) -> DocumentPlan:
    return plan_document(read_document(content, kind, languages))


async def _translate_plans(
    server: ServerState, key: ModelKey, plans: Sequence[DocumentPlan], options: TranslationOptions
) -> dict[str, Translation]:
    """The translation of each sentence of some documents; those in units with tags have alignments."""
    aligned = list(dict.fromkeys(text for plan in plans for text in plan.aligned))
    plain = list(dict.fromkeys(text for plan in plans for text in plan.plain))
    translations: dict[str, Translation] = {}
    for texts, some in ((plain, options), (aligned, replace(options, align="words"))):
        translations |= zip(texts, await translate_in_chunks(server, key, texts, some), strict=True)
    return translations
