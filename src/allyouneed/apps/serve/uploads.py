"""Documents over HTTP: uploaded, translated, and fetched by the URL in the answer."""

import asyncio
import re
import unicodedata
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response

from ..documents import DocumentOptions, document_format
from ..documents.document_translation import DocumentPlan, finish_document, plan_document
from .batching import TranslationOptions
from .bodies import FILE, FILE_URL, DocumentBody, FileBody, described
from .document_processes import DocumentProcess
from .events import EVENT_STREAM, Progress, progress_response
from .libretranslate import read_libre
from .monitoring import count_texts
from .refusals import Refusal
from .request_fields import checked_terms, require_code
from .request_texts import all_sentences, translate_plans
from .scheduler import within
from .server_state import Server, ServerState
from .translated_documents import StoredFile

router = APIRouter(tags=["LibreTranslate"])

_DETECTED_UNITS = 200  # at the beginning of a document, to tell its language
DISABLED = "Files translation are disabled on this server."


class UploadedDocument(NamedTuple):
    """A document and the plan of its translation; `source` is "" if it is to be detected."""

    name: str
    content: bytes
    options: DocumentOptions
    plan: DocumentPlan
    source: str
    target: str

    @property
    def characters(self) -> int:
        """Those that are to be translated."""
        units = zip(self.plan.document.units, self.plan.sentences, strict=True)
        return sum(len(unit.text) for unit, sentences in units if sentences)


@router.post("/translate_file", **described(FILE_URL, FileBody))
async def translate_file(request: Request, server: Server) -> Response:
    """Translate a document; the answer says where to fetch the translation.

    A client that accepts `text/event-stream` gets server-sent events: how many sentences are `done`, of the `total`.
    The last one is `done`, with the answer that others get, or `error`, with its text and status.
    """
    if not server.config.max_file:
        raise Refusal(403, DISABLED)
    body, client = await read_libre(request, server, FileBody)
    languages = document_languages(server, body.source, body.target)
    filename, content = body.file
    name = check_upload(server, filename, content)
    options, glossary = read_document_options(body), checked_terms(body.glossary, server.config)
    server.access.charge(client, cost=file_cost(server, content))
    document = await read_upload(server, name, content, languages, options)
    server.access.charge(client, cost=0, characters=document.characters)

    async def work(on_progress: Progress = lambda *_: None) -> dict[str, str]:
        translated, new_name = await translate_upload(server, document, glossary, on_progress)
        token = await asyncio.to_thread(server.uploads.add, translated, new_name)
        return {"translatedFileUrl": str(request.url_for("download_file", filename=f"{token}.{quote(new_name)}"))}

    if EVENT_STREAM in request.headers.get("accept", ""):
        return await progress_response(work)
    return JSONResponse(await work())


@router.get("/download_file/{filename}", **described(FILE))
async def download_file(filename: str, server: Server) -> Response:
    """Fetch a translated document by the URL that /translate_file answered."""
    if not server.config.max_file:
        raise Refusal(403, DISABLED)
    stored = await asyncio.to_thread(server.uploads.find, filename.partition(".")[0])
    if stored is None:
        raise Refusal(404, "there is no such file, or its time is over; translate it again")
    return attachment(stored)


def check_upload(server: ServerState, filename: str, content: bytes) -> str:
    """A safe name for an uploaded document. Refuses an empty file, one that is too large, and an unknown format."""
    if not filename or not content:
        raise Refusal(400, "Invalid request: empty file")
    if len(content) > server.config.max_file:
        raise Refusal(413, f"Invalid request: request ({len(content)}) exceeds file limit ({server.config.max_file})")
    name = safe_name(filename)
    if document_format(name) is None:
        raise Refusal(400, "Invalid request: file format not supported")
    return name


def file_cost(server: ServerState, content: bytes) -> int:
    """What a document counts in the limit of requests: as many texts of greatest length as it has bytes for."""
    per_text = server.config.max_characters
    return max(1, len(content) // per_text) if per_text else 1


def document_languages(server: ServerState, source: str, target: str) -> tuple[str, str]:
    """The codes of the languages of a document; the source is "" if it is to be detected ("auto").

    Refuses languages that are not served.
    """
    codes = server.models.codes()
    source = "" if source.strip().lower() == "auto" else require_code(source, codes)
    target = require_code(target, codes)
    if source not in ("", target):
        server.models.pair(source, target)
    return source, target


async def read_upload(
    server: ServerState, name: str, content: bytes, languages: tuple[str, str], options: DocumentOptions
) -> UploadedDocument:
    """Read a document that `check_upload` accepted. Refuses what its format cannot read."""
    chosen = replace(options, target_language=languages[1])
    plan = await read_file(server, content, _format(name), chosen)
    return UploadedDocument(name, content, chosen, plan, *languages)


def read_document_options(body: DocumentBody) -> DocumentOptions:
    """How a document is read, by the fields of its request."""
    return DocumentOptions(encoding=body.encoding, column=body.column, into=body.into, numbers=body.numbers)


async def translate_upload(
    server: ServerState,
    document: UploadedDocument,
    glossary: tuple[tuple[str, str], ...] = (),
    on_progress: Progress = lambda *_: None,
) -> tuple[bytes, str]:
    """A document in its target language, and a name for it."""
    name, content, options, plan, source, target = document
    translated = await translate_file_content(
        server, content, _format(name), options, plan, source, target, glossary, on_progress
    )
    stem, dot, ending = name.rpartition(".")
    return translated, f"{stem}_{target}{dot}{ending}"


async def read_file(server: ServerState, content: bytes, kind: str, options: DocumentOptions) -> DocumentPlan:
    """What of a document is to be translated; the log line of the request counts it.

    Raises `DeadlineExceeded` if reading takes longer than a request may.
    """

    def read(process: DocumentProcess) -> DocumentPlan:
        return plan_document(process.read(content, kind, options))

    async with within(server.config.request_timeout):
        plan = await server.documents.run(read)
    count_texts(all_sentences([plan]))
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
        source = (await asyncio.to_thread(server.detector.find_source, text, target)).language
    if source == target:
        return content
    key = server.models.pair(source, target)
    if not (plan.aligned or plan.plain):
        return content
    translations = await translate_plans(server, key, [plan], TranslationOptions(glossary=glossary), on_progress)

    def write(process: DocumentProcess) -> bytes:
        document = replace(plan.document, write=lambda results: process.write(content, kind, options, results))
        return finish_document(plan._replace(document=document), translations).data

    async with within(server.config.request_timeout):
        return await server.documents.run(write)


def _format(name: str) -> str:
    kind = document_format(name)
    assert kind is not None  # see `check_upload`
    return kind


def safe_name(filename: str) -> str:
    """The last part of a file's name without control characters and signs that mean something in paths and headers."""
    name = PurePosixPath(unicodedata.normalize("NFC", filename).replace("\\", "/")).name
    name = re.sub(r"[^\w.() -]", "_", name).strip(". ")
    return name[-100:] or "document"


def attachment(file: StoredFile) -> Response:
    """An answer that a browser saves as a file and never shows, whatever is in it."""
    plain = file.name.encode("ascii", "replace").decode().replace("?", "_")
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name)}"
    return FileResponse(file.path, media_type="application/octet-stream", headers={"Content-Disposition": disposition})
