"""DeepL's API, version 2: translation, languages, usage and documents. Glossaries are in `deepl_glossaries.py`.

docs/http-api.md lists the supported parts of the API and the meaning of its options.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ...config.language_tags import language_name
from ..documents.unit import TagRules
from .access import Client
from .batching import TranslationOptions
from .bodies import FILE, AnyBody, described, many
from .deepl_bodies import (
    DEEPL_ERRORS,
    HANDLE,
    STATUS,
    TARGET_LANGUAGE,
    TEXTS,
    USAGE,
    DeepLBody,
    DocumentKeyBody,
    LanguagesBody,
    OptionsBody,
    TextsBody,
    UploadBody,
)
from .languages import ModelKey, base_language, find_code
from .refusals import Refusal
from .request_fields import checked_terms, read_fields, refuse_too_much
from .request_texts import Markup, detect_sources, translate_each
from .server_state import OwnPages, Server, ServerState
from .translated_documents import DocumentJob
from .uploads import (
    DISABLED,
    attachment,
    check_upload,
    document_languages,
    file_cost,
    read_upload,
    translate_upload,
)

router = APIRouter(prefix="/v2", tags=["DeepL"], responses=DEEPL_ERRORS)

# DeepL's English and Portuguese target codes have a region.
_TARGET_VARIANTS = {
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
}
UNLIMITED = 10**12  # characters, as DeepL writes an unlimited quota


@router.post("/translate", **described(TEXTS, TextsBody))
async def translate_deepl(request: Request, server: Server) -> JSONResponse:
    """Translate texts."""
    body, client = await read_deepl(request, server, TextsBody)
    texts = body.text
    refuse_too_much(texts, server.config)
    source, target = read_pair(server, body)
    how = read_sentence_options(body)
    refuse_unsupported(body)
    terms = await read_terms(server, client, body, source, target)
    server.access.charge(client, cost=len(texts), characters=sum(map(len, texts)))
    detected = [] if source else await detect_sources(server, texts, target, how.markup)
    sources = [one.language for one in detected] or [source] * len(texts)
    answers = await translate_each(
        server, how.prepared(texts), sources, target,
        TranslationOptions(glossary=terms, split_sentences=how.split_sentences), markup=how.markup,
    )  # fmt: skip
    return JSONResponse(
        {
            "translations": [
                {"detected_source_language": base_language(code).upper(), "text": answer.text}
                | ({"billed_characters": len(text)} if body.show_billed_characters else {})
                for code, answer, text in zip(sources, answers, texts, strict=True)
            ]
        }
    )


@router.get("/languages", **described(many(TARGET_LANGUAGE)))
async def list_deepl_languages(request: Request, server: Server) -> JSONResponse:
    """List the languages that texts may have (`type=source`), or that they can be translated into (`type=target`)."""
    body, _ = await read_deepl(request, server, LanguagesBody)
    languages = server.models.languages()
    if body.type == "source":
        return JSONResponse([{"language": one.code.upper(), "name": one.name} for one in languages])
    targets = dict.fromkeys(code for one in languages for code in one.targets)
    variants = [
        variant for code in targets for variant in _TARGET_VARIANTS.get(code, ((code.upper(), language_name(code)),))
    ]
    return JSONResponse([{"language": code, "name": name, "supports_formality": False} for code, name in variants])


@router.get("/usage", **described(USAGE))
async def show_usage(request: Request, server: Server) -> JSONResponse:
    """Return how many characters this key has sent today, and how many it may send."""
    _, client = await read_deepl(request, server, DeepLBody, cost=1)
    limit = client.key.characters_per_day if client.key else 0
    return JSONResponse(
        {"character_count": server.access.characters_today(client), "character_limit": limit or UNLIMITED}
    )


async def read_deepl(
    request: Request, server: ServerState, kind: type[AnyBody], *, cost: int = 0
) -> tuple[AnyBody, Client]:
    """Read the body of a request and its client. Refuses a missing or wrong key with DeepL's status and text.

    A `cost` is charged before the body is parsed.
    """
    fields = await read_fields(request)
    try:
        client = server.access.identify(request, fields.text("auth_key"))
    except Refusal as refusal:
        if refusal.status in (400, 403) and refusal.retry_after is None:
            raise Refusal(403, "Forbidden. The API key is missing or unknown.") from None
        raise
    if cost:
        server.access.charge(client, cost=cost)
    return kind.parse(fields), client


def read_pair(server: ServerState, body: OptionsBody) -> tuple[str, str]:
    """Read source and target as codes that are served; "" as source means to detect it. Refuses other languages."""
    codes: list[str] = []
    for name in ("source_lang", "target_lang"):
        code = getattr(body, name)
        match = find_code(code, server.models.codes()) if code else ""
        if match is None:
            raise Refusal(400, f"{str(body.refusal(name)).rstrip('.')}; {server.models.listed()}")
        codes.append(match)
    return codes[0], codes[1]


async def read_terms(
    server: ServerState, client: Client, body: OptionsBody, source: str, target: str
) -> tuple[tuple[str, str], ...]:
    """Read the terms of the glossaries that a request names. If two contain the same term, the first one counts.

    Refuses glossaries if the request names no source language, and a glossary without terms for the two languages.
    """
    names = body.glossary_ids or list(filter(None, [body.glossary_id]))
    if names and not source:
        raise Refusal(400, "Bad request: Use of a glossary requires the source_lang parameter to be specified")
    pair = ModelKey(base_language(source), base_language(target))
    terms: dict[str, str] = {}
    for name in ",".join(names).split(",") if names else []:
        terms = await asyncio.to_thread(server.glossaries.terms, client.account, name, pair) | terms
    return checked_terms(terms, server.config)


@dataclass(frozen=True, slots=True)
class SentenceOptions:
    """How the texts of a request are split: at lines and sentences, at sentences, or not at all."""

    split_lines: bool
    split_sentences: bool
    markup: Markup | None

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """Prepare the texts for translation. If lines do not end sentences, line breaks become blanks."""
        return [text if self.split_lines or self.markup else re.sub(r"\r\n?|\n", " ", text) for text in texts]


def read_sentence_options(body: TextsBody) -> SentenceOptions:
    """Read how texts of /v2/translate are split, and what their tags mean, from DeepL's options.

    Without `tag_handling`, a tag is text like any other, and the options for tags have no effect.
    """
    mode, handling = body.split_sentences, body.tag_handling
    split_lines, split_sentences = mode == "1" or (mode == "" and handling != "html"), mode != "0"
    if not handling:
        return SentenceOptions(split_lines, split_sentences, None)
    ignored, splitting, apart = map(frozenset, (body.ignore_tags, body.splitting_tags, body.non_splitting_tags))
    rules = TagRules(ignored, splitting, apart, body.outline_detection)
    return SentenceOptions(split_lines, split_sentences, Markup(handling, rules, keep_lines=split_lines))


def refuse_unsupported(body: OptionsBody) -> None:
    """Refuse options that no model here can follow, where it might not be noticed that they were ignored.

    `prefer_more` and `prefer_less` are accepted for a language without formality.
    """
    if body.formality in ("more", "less"):
        raise Refusal(400, "Bad request: 'formality' is not supported for given 'target_lang'.")
    for name in ("custom_instructions", "style_id", "translation_memory_id"):
        if getattr(body, name) is not None:
            raise Refusal(400, f"Bad request: '{name}' is not supported by this server.")


@router.post("/document", dependencies=[OwnPages], **described(HANDLE, UploadBody))
async def upload_document(request: Request, server: Server) -> JSONResponse:
    """Translate a document. The answer has the identifier and the key with which to ask for it."""
    body, client = await read_deepl(request, server, UploadBody)
    if not server.config.max_file:
        raise Refusal(403, DISABLED)
    source, target = read_pair(server, body)
    languages = document_languages(server, source or "auto", target)
    file = body.file._replace(filename=body.filename or body.file.filename)
    document = check_upload(server, file, body, *languages)
    refuse_unsupported(body)
    if body.output_format.lower() not in ("", document.name.rpartition(".")[2].lower()):
        raise body.refusal("output_format")
    terms = await read_terms(server, client, body, source, target)
    server.access.charge(client, cost=file_cost(server, document))
    plan, characters = await read_upload(server, document)
    server.access.charge(client, cost=0, characters=characters)
    identifier, key = server.jobs.start(translate_upload(server, document, plan, terms), characters=characters)
    return JSONResponse({"document_id": identifier, "document_key": key})


@router.post("/document/{document}", dependencies=[OwnPages], **described(STATUS, DocumentKeyBody))
async def show_document_status(document: str, request: Request, server: Server) -> JSONResponse:
    """Report whether a document is translated."""
    job = await _find_job(document, request, server)
    answer: dict[str, object] = {"document_id": document, "status": job.status}
    if job.status == "translating":
        answer["seconds_remaining"] = 1
    if job.status == "done":
        answer["billed_characters"] = job.characters
    if job.error:
        answer["error_message"] = job.error
    return JSONResponse(answer)


@router.post("/document/{document}/result", dependencies=[OwnPages], **described(FILE, DocumentKeyBody))
async def fetch_document(document: str, request: Request, server: Server) -> Response:
    """Return a translated document."""
    job = await _find_job(document, request, server)
    return attachment(await asyncio.to_thread(server.jobs.result, job))


async def _find_job(document: str, request: Request, server: ServerState) -> DocumentJob:
    body, _ = await read_deepl(request, server, DocumentKeyBody)
    return server.jobs.find(document, body.document_key)
