"""The API of DeepL, version 2: translate, languages, usage and documents; glossaries are in `deepl_glossaries.py`.

docs/http-api.md lists what of it is here and what its options do.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ...language_tags import language_name
from ..documents.unit import TagRules
from . import deepl_schema as schema
from .access import Client, QuotaRefusal
from .batching import TranslationOptions
from .languages import ModelKey, base_language, find_code
from .refusals import Refusal
from .request_fields import Fields, checked_terms, read_fields, refuse_too_much
from .request_texts import Markup, detect_sources, translate_each
from .server_state import OwnPages, Server, ServerState
from .translated_documents import DocumentJob
from .uploads import (
    DISABLED,
    attachment,
    check_upload,
    document_languages,
    file_cost,
    read_document_options,
    read_upload,
    translate_upload,
)

router = APIRouter(prefix="/v2", tags=["DeepL"])

# DeepL writes English and Portuguese as targets with a region.
_TARGET_VARIANTS = {
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
}
UNLIMITED = 10**12  # characters, as DeepL writes a limit that nobody reaches


@router.post("/translate", **schema.DEEPL_TRANSLATE)
async def translate_deepl(request: Request, server: Server) -> JSONResponse:
    """Translate texts."""
    fields, client = await read_deepl_request(request, server)
    texts = fields.all_texts("text")
    if not texts:
        raise Refusal(400, "Bad request: Value for 'text' not specified.")
    refuse_too_much(texts, server.config)
    target = require_deepl_code(server, fields, "target_lang")
    source = require_deepl_code(server, fields, "source_lang") if fields.text("source_lang") else ""
    how = read_sentence_options(fields)
    refuse_unsupported(fields)
    terms = await read_terms(server, client, fields, source, target)
    charge(server, client, cost=len(texts), characters=sum(map(len, texts)))
    sources = [source] * len(texts) if source else [one.language for one in await detect_sources(server, texts, target)]
    answers = await translate_each(
        server, how.prepared(texts), sources, target, TranslationOptions(glossary=terms), markup=how.markup,
        split_sentences=how.split_sentences,
    )  # fmt: skip
    billed = fields.flag("show_billed_characters")
    return JSONResponse(
        {
            "translations": [
                {"detected_source_language": base_language(code).upper(), "text": answer.text}
                | ({"billed_characters": len(text)} if billed else {})
                for code, answer, text in zip(sources, answers, texts, strict=True)
            ]
        }
    )


@router.get("/languages", **schema.DEEPL_LANGUAGES)
async def list_deepl_languages(request: Request, server: Server) -> JSONResponse:
    """List the languages that texts may have (`type=source`), or that they can be translated into (`type=target`)."""
    fields, _ = await read_deepl_request(request, server)
    kind = fields.text("type") or "source"
    if kind not in ("source", "target"):
        raise Refusal(400, "Bad request: Value for 'type' not supported.")
    languages = server.models.languages()
    if kind == "source":
        return JSONResponse([{"language": one.code.upper(), "name": one.name} for one in languages])
    targets = dict.fromkeys(code for one in languages for code in one.targets)
    variants = [
        variant for code in targets for variant in _TARGET_VARIANTS.get(code, ((code.upper(), language_name(code)),))
    ]
    return JSONResponse([{"language": code, "name": name, "supports_formality": False} for code, name in variants])


@router.get("/usage", **schema.DEEPL_USAGE)
async def show_usage(request: Request, server: Server) -> JSONResponse:
    """Count the characters that this key has sent today, and say how many it may."""
    _, client = await read_deepl_request(request, server)
    charge(server, client, cost=1, characters=0)
    limit = client.key.characters_per_day if client.key else 0
    return JSONResponse(
        {"character_count": server.access.characters_today(client), "character_limit": limit or UNLIMITED}
    )


async def read_deepl_request(request: Request, server: ServerState) -> tuple[Fields, Client]:
    """The fields of a request and its client. Refuses a missing or wrong key with DeepL's status and text."""
    fields = await read_fields(request)
    try:
        return fields, server.access.identify(request, fields.text("auth_key"))
    except Refusal as refusal:
        if refusal.status in (400, 403) and refusal.retry_after is None:
            raise Refusal(403, "Forbidden. The API key is missing or unknown.") from None
        raise


def charge(server: ServerState, client: Client, *, cost: int, characters: int) -> None:
    """Count a request of a client; a used-up day has DeepL's status 456."""
    try:
        server.access.charge(client, cost=cost, characters=characters)
    except QuotaRefusal as refusal:
        raise refusal.as_deepl() from None


def require_deepl_code(server: ServerState, fields: Fields, name: str) -> str:
    """The served code of a language field. Refuses a missing one, and languages that are not served."""
    code = fields.text(name)
    if not code:
        raise Refusal(400, f"Bad request: Value for '{name}' not specified.")
    match = find_code(code, server.models.codes())
    if match is None:
        raise Refusal(400, f"Bad request: Value for '{name}' not supported.")
    return match


async def read_terms(
    server: ServerState, client: Client, fields: Fields, source: str, target: str
) -> tuple[tuple[str, str], ...]:
    """The terms of the glossaries that a request names; of two with the same term the one named first counts.

    Refuses a glossary without a source language, and one that has no terms for the two languages.
    """
    names = fields.all_texts("glossary_ids") or ([name] if (name := fields.text("glossary_id")) else [])
    if names and not source:
        raise Refusal(400, "Bad request: Use of a glossary requires the source_lang parameter to be specified")
    pair = ModelKey(base_language(source), base_language(target))
    terms: dict[str, str] = {}
    for name in ",".join(names).split(",") if names else []:
        terms = await asyncio.to_thread(server.glossaries.terms, client.account, name, pair) | terms
    return checked_terms(terms, server.config)


# Left out, these would change a translation in a way that its reader may not notice.
_UNSUPPORTED = ("custom_instructions", "style_id", "translation_memory_id")
_MODES = {"": "", "1": "1", "True": "1", "0": "0", "False": "0", "nonewlines": "nonewlines"}


@dataclass(frozen=True, slots=True)
class SentenceOptions:
    """How the texts of a request are split: at lines and sentences, at sentences, or not at all."""

    split_lines: bool
    split_sentences: bool
    markup: Markup | None

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """The texts as they are to be translated: where lines do not end sentences, a line break is a blank."""
        return [text if self.split_lines or self.markup else re.sub(r"\r\n?|\n", " ", text) for text in texts]


def read_sentence_options(fields: Fields) -> SentenceOptions:
    """How the texts of /v2/translate are split, and what their tags mean, which DeepL's options for tags say.

    Without `tag_handling` a tag is text like any other, and the options for tags have no meaning.
    """
    split_sentences, handling = fields.get("split_sentences"), fields.text("tag_handling")
    if handling not in ("", "html", "xml"):
        raise Refusal(400, "Bad request: Value for 'tag_handling' not supported.")
    mode = _MODES.get("" if split_sentences is None else str(split_sentences))
    if mode is None:
        raise Refusal(400, "Bad request: Value for 'split_sentences' not supported.")
    split_lines, split_sentences = mode == "1" or (mode == "" and handling != "html"), mode != "0"
    if not handling:
        return SentenceOptions(split_lines, split_sentences, None)
    outline = fields.get("outline_detection") in (None, "") or fields.flag("outline_detection")
    ignored, splitting, non_splitting = (
        _names(fields, name) for name in ("ignore_tags", "splitting_tags", "non_splitting_tags")
    )
    rules = TagRules(ignored, splitting, non_splitting, outline)
    markup = Markup("html" if handling == "html" else "xml", rules, keep_lines=split_lines)
    return SentenceOptions(split_lines, split_sentences, markup)


def refuse_unsupported(fields: Fields) -> None:
    """Refuse what no model here can do. `prefer_more` and `prefer_less` accept a language without formality."""
    formality = fields.text("formality")
    if formality in ("more", "less"):
        raise Refusal(400, "Bad request: 'formality' is not supported for given 'target_lang'.")
    if formality not in ("", "default", "prefer_more", "prefer_less"):
        raise Refusal(400, "Bad request: Value for 'formality' not supported.")
    for name in _UNSUPPORTED:
        if fields.get(name) not in (None, "", []):
            raise Refusal(400, f"Bad request: '{name}' is not supported by this server.")


def _names(fields: Fields, name: str) -> frozenset[str]:
    """The names of tags in a field: a list, or in a form also separated by commas."""
    names = (part.strip() for value in fields.all_texts(name) or () for part in value.split(","))
    return frozenset(filter(None, names))


@router.post("/document", dependencies=[OwnPages], **schema.UPLOAD_DOCUMENT)
async def upload_document(request: Request, server: Server) -> JSONResponse:
    """Translate a document; the answer has the identifier and the key to ask for it."""
    fields, client = await read_deepl_request(request, server)
    if not server.config.max_file:
        raise Refusal(403, DISABLED)
    upload = fields.upload("file")
    if upload is None:
        raise Refusal(400, "Bad request: Value for 'file' not specified.")
    target = require_deepl_code(server, fields, "target_lang")
    source = require_deepl_code(server, fields, "source_lang") if fields.text("source_lang") else ""
    languages = document_languages(server, source or "auto", target)
    filename, content = upload
    checked = check_upload(server, fields.text("filename") or filename, content)
    refuse_unsupported(fields)
    if fields.text("output_format").lower() not in ("", checked.rpartition(".")[2].lower()):
        raise Refusal(400, "Bad request: Value for 'output_format' not supported.")
    terms = await read_terms(server, client, fields, source, target)
    charge(server, client, cost=file_cost(server, content), characters=0)
    document = await read_upload(server, checked, content, languages, read_document_options(fields))
    charge(server, client, cost=0, characters=document.characters)
    identifier, key = server.jobs.start(translate_upload(server, document, terms), characters=document.characters)
    return JSONResponse({"document_id": identifier, "document_key": key})


@router.post("/document/{document}", dependencies=[OwnPages], **schema.DOCUMENT_STATUS)
async def show_document_status(document: str, request: Request, server: Server) -> JSONResponse:
    """Say whether a document is translated."""
    job = await _find_job(document, request, server)
    answer: dict[str, object] = {"document_id": document, "status": job.status}
    if job.status == "translating":
        answer["seconds_remaining"] = 1
    if job.status == "done":
        answer["billed_characters"] = job.characters
    if job.error:
        answer["error_message"] = job.error
    return JSONResponse(answer)


@router.post("/document/{document}/result", dependencies=[OwnPages], **schema.DOCUMENT_RESULT)
async def fetch_document(document: str, request: Request, server: Server) -> Response:
    """Fetch a translated document."""
    job = await _find_job(document, request, server)
    return attachment(await asyncio.to_thread(server.jobs.result, job))


async def _find_job(document: str, request: Request, server: ServerState) -> DocumentJob:
    fields, _ = await read_deepl_request(request, server)
    return server.jobs.find(document, fields.text("document_key"))
