"""Documents, and texts with tags, translated through the scheduler with the texts of all other requests."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...errors import InputError
from ...translator import Translation
from ..documents import Document, DocumentOptions, read_document
from ..documents.document_translation import DocumentPlan, finish_document, locate_refusal, plan_document
from ..documents.unit import NO_RULES, TagRules
from ..documents.xml_text import read_xml_text
from .detection import detect_source
from .document_processes import DocumentProcess
from .events import Progress
from .languages import ModelKey
from .request_log import count_texts
from .request_texts import Answer, translate_in_chunks
from .scheduler import within
from .server_state import ServerState
from .translation_options import TranslationOptions

_DETECTED_UNITS = 200  # at the beginning of a document, to tell its language


@dataclass(frozen=True, slots=True)
class Markup:
    """The tags of a text. In XML, `keep_lines` keeps line breaks, which else are blanks as in HTML."""

    kind: Literal["html", "xml"] = "html"
    rules: TagRules = NO_RULES
    keep_lines: bool = False

    def read(self, text: str, key: ModelKey) -> Document:
        """The units of a text to translate from and into the languages of `key`."""
        if self.kind == "xml":
            return read_xml_text(text, self.rules, keep_lines=self.keep_lines)
        options = DocumentOptions(target_language=key.target, encoding="utf-8", tags=self.rules)
        # Zero bytes are dropped, as from plain texts; `read_document` would refuse them.
        return read_document(text.replace("\0", "").encode(), "html", options, name="the text")


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
        return plan_document(markup.read(text, key), split_sentences=split_sentences)

    plans = [await asyncio.to_thread(plan, text) for text in texts]
    count_texts(_sentences(plans))
    translations = await _translate_plans(server, key, plans, replace(options, alternatives=0))
    answers = []
    for one in plans:
        parts = tuple(translations[text] for text in (*one.aligned, *one.plain))
        translated = await asyncio.to_thread(finish_document, one, translations)
        answers.append(Answer(translated.data.decode(), (), parts))
    return answers


async def read_file(server: ServerState, content: bytes, kind: str, options: DocumentOptions) -> DocumentPlan:
    """What of a document is to be translated; the log line of the request counts it.

    Raises `DeadlineExceeded` if reading takes longer than a request may.
    """

    def read(process: DocumentProcess) -> DocumentPlan:
        return plan_document(process.read(content, kind, options))

    async with within(server.config.request_timeout):
        plan = await server.documents.run(read)
    count_texts(_sentences([plan]))
    return plan


async def translate_file_content(
    server: ServerState,
    content: bytes,
    kind: str,
    options: DocumentOptions,
    plan: DocumentPlan,
    source: str,
    target: str,
    glossary: tuple[tuple[str, str], ...] = (),
    on_progress: Progress = lambda *_: None,
) -> bytes:
    """The document in the language `target`. Without a source language that is detected.

    `on_progress` gets how many sentences are translated, of how many.
    """
    if not source:
        text = "\n".join(unit.text for unit in plan.document.units[:_DETECTED_UNITS])
        source = (await asyncio.to_thread(detect_source, server.detector, server.models, text, target)).language
    if source == target:
        return content
    key = server.models.pair(source, target)
    if not (plan.aligned or plan.plain):
        return content
    translations = await _translate_plans(server, key, [plan], TranslationOptions(glossary=glossary), on_progress)

    def write(process: DocumentProcess) -> bytes:
        document = replace(plan.document, write=lambda results: process.write(content, kind, options, results))
        return finish_document(plan._replace(document=document), translations).data

    async with within(server.config.request_timeout):
        return await server.documents.run(write)


def _sentences(plans: Sequence[DocumentPlan]) -> list[str]:
    return list(dict.fromkeys(text for plan in plans for text in (*plan.aligned, *plan.plain)))


async def _translate_plans(
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
