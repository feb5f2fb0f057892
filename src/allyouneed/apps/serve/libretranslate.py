"""The API of LibreTranslate: https://github.com/LibreTranslate/LibreTranslate.

Fields, status codes and error texts are LibreTranslate's, so that its clients work unchanged. Optional fields beyond
them: `scores`, `alignments`, `flags` and `glossary`. docs/http-api.md lists the differences.
"""

import asyncio
import math
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from ...language_tags import language_name
from ..documents import readable_endings
from . import libretranslate_schema as schema
from .access import Client
from .batching import TranslationOptions
from .languages import Detection
from .refusals import Refusal
from .request_fields import (
    Fields,
    read_count,
    read_fields,
    read_glossary,
    refuse_too_much,
    require_code,
    require_text,
    require_texts,
)
from .request_texts import Answer, Markup, detect_sources, translate_each
from .server_state import OwnPages, Server, ServerState

router = APIRouter(tags=["LibreTranslate"])


@router.post("/translate", **schema.TRANSLATE)
async def translate_texts(request: Request, server: Server) -> JSONResponse:
    """Translate one text or a list of texts."""
    fields, client = await read_request(request, server)
    texts, is_batch = require_texts(fields, server.config)
    source, target = require_text(fields, "source"), require_text(fields, "target")
    alternatives = read_count(fields, "alternatives", limit=server.config.max_alternatives)
    form = fields.text("format") or "text"
    codes = server.models.codes()
    is_auto = source.strip().lower() == "auto"
    sources = [] if is_auto else [require_code(source, codes)] * len(texts)
    target = require_code(target, codes)
    if form not in ("text", "html"):
        raise Refusal(400, f"{form[:40]} format is not supported")
    options = TranslationOptions(
        alternatives=alternatives,
        align="words" if fields.flag("alignments") else None,
        glossary=read_glossary(fields.get("glossary"), server.config),
    )
    server.access.charge(client, cost=max(1, len(texts)), characters=sum(map(len, texts)))
    detected = await detect_sources(server, texts, target) if is_auto else []
    sources = sources or [one.language for one in detected]
    answers = await translate_each(server, texts, sources, target, options, markup=Markup() if form == "html" else None)
    return JSONResponse(_describe(fields, answers, detected, is_batch=is_batch))


@router.post("/detect", **schema.DETECT)
async def detect_language(request: Request, server: Server) -> JSONResponse:
    """Tell which language a text is in, of those that can be translated."""
    fields, client = await read_request(request, server)
    texts, _ = require_texts(fields, server.config)
    server.access.charge(client, cost=len(texts))
    detections = await asyncio.to_thread(server.detector.detect, "\n".join(texts))
    return JSONResponse([one._asdict() for one in detections or [Detection("en", 0.0)]])


@router.get("/languages", **schema.LANGUAGES)
async def list_languages(server: Server) -> JSONResponse:
    """List the languages, and into which others each can be translated."""
    targets = {language.code: language.targets for language in server.models.languages()}
    return JSONResponse(
        [
            {"code": code, "name": language_name(code), "targets": sorted(targets.get(code, ()))}
            for code in server.models.codes()
        ]
    )


@router.post("/suggest", dependencies=[OwnPages], **schema.SUGGEST)
async def suggest_translation(request: Request, server: Server) -> JSONResponse:
    """Store a better translation of a text."""
    if server.suggestions is None:
        raise Refusal(403, "Suggestions are disabled on this server.")
    fields, client = await read_request(request, server)
    text, better = require_text(fields, "q"), require_text(fields, "s")
    if not (text.strip() and better.strip()):
        raise Refusal(400, "Invalid request: q and s parameters must have text")
    refuse_too_much([text, better], server.config)
    codes = server.models.codes()
    source, target = (require_text(fields, name) for name in ("source", "target"))
    key = server.models.pair(require_code(source, codes), require_code(target, codes))
    server.access.charge(client)
    await asyncio.to_thread(server.suggestions.add, text, better, *key)
    return JSONResponse({"success": True})


@router.get("/frontend/settings", **schema.SETTINGS)
async def frontend_settings(server: Server) -> JSONResponse:
    """Tell a page which limits and features this server has."""
    config = server.config
    target = next((pair.target for pair in server.models.pairs()), "und")  # a run that trains may have none yet
    a_minute = server.access.requests_per_minute
    text_limits = (config.max_texts, a_minute and max(1, a_minute - 1))  # one is left to detect the language
    return JSONResponse(
        {
            "charLimit": config.max_characters or -1,
            "textsLimit": min(filter(None, text_limits), default=-1),  # not LibreTranslate's, as the next one
            "alternativesLimit": config.max_alternatives,
            "frontendTimeout": 500,  # milliseconds that LibreTranslate's page waits after the last key
            "apiKeys": server.access.keys is not None,
            "keyRequired": server.access.key_required,
            "suggestions": server.suggestions is not None,
            "filesTranslation": bool(config.max_file),
            "supportedFilesFormat": readable_endings() if config.max_file else [],
            "textsLogged": config.log_text,  # not LibreTranslate's: the page says so
            "training": server.training is not None,  # nor this: the page shows the run
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": {"code": target, "name": language_name(target)},
            },
        }
    )


async def read_request(request: Request, server: ServerState) -> tuple[Fields, Client]:
    """The fields of a request and the client that may send it, by `api_key` or the Authorization header."""
    fields = await read_fields(request)
    return fields, server.access.identify(request, fields.text("api_key"))


def _describe(fields: Fields, answers: list[Answer], detected: list[Detection], *, is_batch: bool) -> dict[str, Any]:
    """The answer to /translate: lists for a batch, else single values; optional fields if the request has them."""
    values: dict[str, list[Any]] = {"translatedText": [answer.text for answer in answers]}
    if detected:
        values["detectedLanguage"] = [one._asdict() for one in detected]
    if read_count(fields, "alternatives", limit=2**31):
        values["alternatives"] = [list(answer.alternatives) for answer in answers]
    if fields.flag("scores"):
        values["scores"] = [round(one.score, 4) if math.isfinite(one.score) else None for one in answers]
    if fields.flag("flags"):
        values["flags"] = [answer.flags for answer in answers]
    if fields.flag("alignments"):
        values["alignments"] = [answer.alignment for answer in answers]
    return values if is_batch else {name: some[0] for name, some in values.items()}
