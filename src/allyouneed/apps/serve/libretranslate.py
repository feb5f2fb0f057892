"""LibreTranslate's API: https://github.com/LibreTranslate/LibreTranslate.

Fields, status codes and error texts are those of LibreTranslate, so that its clients work unchanged. There are four
additional optional fields: `scores`, `alignments`, `flags` and `glossary`. docs/http-api.md lists the differences.
"""

import asyncio
import math
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from ...config.language_tags import language_name
from ...errors import InputError
from ..documents import readable_endings
from .access import Client
from .batching import TranslationOptions
from .bodies import AnyBody, described, many
from .languages import Detection, ModelKey
from .libretranslate_bodies import (
    DETECTED,
    SETTINGS,
    SOURCE_LANGUAGE,
    STORED,
    TRANSLATED,
    DetectBody,
    SuggestBody,
    TranslateBody,
)
from .refusals import Refusal
from .request_fields import checked_count, checked_terms, read_fields, refuse_too_much, require_code
from .request_texts import Answer, Markup, detect_sources, translate_each
from .server_state import OwnPages, Server, ServerState

router = APIRouter(tags=["LibreTranslate"])


@router.post("/translate", **described(TRANSLATED, TranslateBody))
async def translate_texts(request: Request, server: Server) -> JSONResponse:
    """Translate one text or a list of texts."""
    body, client = await read_libre(request, server, TranslateBody)
    texts = [body.q] if isinstance(body.q, str) else body.q
    refuse_too_much(texts, server.config)
    alternatives = checked_count(max(0, body.alternatives), "alternatives", limit=server.config.max_alternatives)
    is_auto = body.source.strip().lower() == "auto"
    sources = [] if is_auto else [require_code(body.source, server.models)] * len(texts)
    target = require_code(body.target, server.models)
    if body.format not in ("text", "html"):
        raise Refusal(400, f"{body.format[:40]} format is not supported")
    options = TranslationOptions(
        alternatives=alternatives,
        align="words" if body.alignments else None,
        glossary=checked_terms(body.glossary, server.config),
    )
    server.access.charge(client, cost=len(texts), characters=sum(map(len, texts)))
    markup = Markup() if body.format == "html" else None
    detected = await detect_sources(server, texts, target, markup) if is_auto else []
    sources = sources or [one.language for one in detected]
    answers = await translate_each(server, texts, sources, target, options, markup=markup)
    return JSONResponse(_describe(body, answers, detected))


@router.post("/detect", **described(many(DETECTED), DetectBody))
async def detect_language(request: Request, server: Server) -> JSONResponse:
    """Detect the language of a text, among the languages that can be translated."""
    body, client = await read_libre(request, server, DetectBody)
    texts = [body.q] if isinstance(body.q, str) else body.q
    refuse_too_much(texts, server.config)
    server.access.charge(client, cost=len(texts))
    detections = await asyncio.to_thread(server.detector.detect, "\n".join(texts))
    return JSONResponse([one._asdict() for one in detections or [Detection("en", 0.0)]])


@router.get("/languages", **described(many(SOURCE_LANGUAGE)))
async def list_languages(server: Server) -> JSONResponse:
    """List the source languages, each with the languages it can be translated into."""
    targets = {language.code: language.targets for language in server.models.languages()}
    return JSONResponse(
        [
            {"code": code, "name": language_name(code), "targets": sorted(targets.get(code, ()))}
            for code in server.models.codes()
        ]
    )


@router.post("/suggest", dependencies=[OwnPages], **described(STORED, SuggestBody))
async def suggest_translation(request: Request, server: Server) -> JSONResponse:
    """Store a better translation of a text. The model's own translation is not stored."""
    if server.suggestions is None:
        raise Refusal(403, "Suggestions are disabled on this server.")
    body, client = await read_libre(request, server, SuggestBody)
    if not (body.q.strip() and body.s.strip()):
        raise Refusal(400, "Invalid request: q and s parameters must have text")
    refuse_too_much([body.q, body.s], server.config)
    models = server.models
    key = models.pair(require_code(body.source, models), require_code(body.target, models))
    server.access.charge(client, characters=len(body.q))
    if not await _is_unedited(server, key, body.q, body.s):
        await asyncio.to_thread(server.suggestions.add, body.q, body.s, *key)
    return JSONResponse({"success": True})


async def _is_unedited(server: ServerState, key: ModelKey, text: str, suggestion: str) -> bool:
    """Return True if a suggestion equals the model's translation: learning it would only confirm errors."""
    try:
        (answer,) = await translate_each(server, [text], [key.source], key.target, TranslationOptions())
    except InputError:
        return False  # the model cannot read the text
    return suggestion.split() == answer.text.split()


@router.get("/frontend/settings", **described(SETTINGS))
async def frontend_settings(server: Server) -> JSONResponse:
    """Return the limits and features of this server, for a page."""
    config = server.config
    target = next((pair.target for pair in server.models.pairs()), "und")  # a training run may have no model yet
    a_minute = server.access.requests_per_minute
    text_limits = (config.max_texts, a_minute and max(1, a_minute - 1))  # leaves one request to detect the language
    return JSONResponse(
        {
            "charLimit": config.max_characters or -1,
            "textsLimit": min(filter(None, text_limits), default=-1),  # not in LibreTranslate, like the next
            "alternativesLimit": config.max_alternatives,
            "frontendTimeout": 500,  # milliseconds that LibreTranslate's page waits after the last key
            "apiKeys": server.access.keys is not None,
            "keyRequired": server.access.key_required,
            "suggestions": server.suggestions is not None,
            "filesTranslation": bool(config.max_file),
            "supportedFilesFormat": readable_endings() if config.max_file else [],
            "textsLogged": config.log_text,  # not in LibreTranslate: the page tells its users
            "training": server.training is not None,  # not in LibreTranslate: the page shows the run
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": {"code": target, "name": language_name(target)},
            },
        }
    )


async def read_libre(request: Request, server: ServerState, kind: type[AnyBody]) -> tuple[AnyBody, Client]:
    """Read the body of a request, and identify its client by `api_key` or the Authorization header."""
    fields = await read_fields(request)
    client = server.access.identify(request, fields.text("api_key"))
    return kind.parse(fields), client


def _describe(body: TranslateBody, answers: list[Answer], detected: list[Detection]) -> dict[str, Any]:
    """Make the answer to /translate: lists for a batch, otherwise single values; optional fields only on request."""
    values: dict[str, list[Any]] = {"translatedText": [answer.text for answer in answers]}
    if detected:
        values["detectedLanguage"] = [one._asdict() for one in detected]
    if body.alternatives > 0:
        values["alternatives"] = [list(answer.alternatives) for answer in answers]
    if body.scores:
        values["scores"] = [round(one.score, 4) if math.isfinite(one.score) else None for one in answers]
    if body.flags:
        values["flags"] = [answer.flags for answer in answers]
    if body.alignments:
        values["alignments"] = [answer.alignment for answer in answers]
    return values if isinstance(body.q, list) else {name: some[0] for name, some in values.items()}
