"""Documents over HTTP: uploaded, translated, and fetched from the URL in the answer."""

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response

from ..documents import Document, DocumentOptions, UnitTranslation, document_format
from ..documents.document_translation import DocumentPlan, finish_document, plan_document
from .batching import TranslationOptions
from .bodies import FILE, DocumentBody, described
from .document_processes import DocumentProcess
from .events import EVENT_STREAM, Progress, progress_response
from .libretranslate import read_libre
from .libretranslate_bodies import FILE_URL, FileBody
from .monitoring import count_texts
from .refusals import Refusal
from .request_fields import UploadedFile, checked_terms, require_code
from .request_texts import all_sentences, translate_plans
from .scheduler import within
from .server_state import Server, ServerState
from .translated_documents import StoredFile

router = APIRouter(tags=["LibreTranslate"])

_DETECTED_UNITS = 200  # at the beginning of a document, to detect its language
DISABLED = "Files translation are disabled on this server."


class UploadedDocument(NamedTuple):
    """A document to translate. A `source` of "" means that its language is detected."""

    name: str
    kind: str
    content: bytes
    options: DocumentOptions
    source: str

    @property
    def target(self) -> str:
        """The language to translate into."""
        return self.options.target_language


@router.post("/translate_file", **described(FILE_URL, FileBody))
async def translate_file(request: Request, server: Server) -> Response:
    """Translate a document. The answer says where to fetch the translation.

    A client that accepts `text/event-stream` gets server-sent events with the number of sentences `done` and the
    `total`. The last event is `done`, with the answer that other clients get, or `error`, with its text and status.
    """
    if not server.config.max_file:
        raise Refusal(403, DISABLED)
    body, client = await read_libre(request, server, FileBody)
    languages = document_languages(server, body.source, body.target)
    document = check_upload(server, body.file, body, *languages)
    glossary = checked_terms(body.glossary, server.config)
    server.access.charge(client, cost=file_cost(server, document))
    plan, characters = await read_upload(server, document)
    server.access.charge(client, cost=0, characters=characters)

    async def work(on_progress: Progress = lambda *_: None) -> dict[str, str]:
        translated, new_name = await translate_upload(server, document, plan, glossary, on_progress)
        token = await asyncio.to_thread(server.uploads.add, translated, new_name)
        return {"translatedFileUrl": str(request.url_for("download_file", filename=f"{token}.{quote(new_name)}"))}

    if EVENT_STREAM in request.headers.get("accept", ""):
        return await progress_response(work)
    return JSONResponse(await work())


@router.get("/download_file/{filename}", **described(FILE))
async def download_file(filename: str, server: Server) -> Response:
    """Return a translated document, at the URL that /translate_file answered."""
    if not server.config.max_file:
        raise Refusal(403, DISABLED)
    stored = await asyncio.to_thread(server.uploads.find, filename.partition(".")[0])
    if stored is None:
        raise Refusal(404, "there is no such file, or it has expired; translate the document again")
    return attachment(stored)


def check_upload(
    server: ServerState, file: UploadedFile, body: DocumentBody, source: str, target: str
) -> UploadedDocument:
    """Check an uploaded document and give it a safe name. Refuses an empty or too large file, and an unknown format."""
    filename, content = file
    if not filename or not content:
        raise Refusal(400, "Invalid request: empty file")
    if len(content) > server.config.max_file:
        raise Refusal(413, f"Invalid request: request ({len(content)}) exceeds file limit ({server.config.max_file})")
    name = safe_name(filename)
    if (kind := document_format(name)) is None:
        raise Refusal(400, "Invalid request: file format not supported")
    options = DocumentOptions(
        target, body.encoding, body.column, body.into, numbers=body.numbers, source_language=source
    )
    return UploadedDocument(name, kind, content, options, source)


def file_cost(server: ServerState, document: UploadedDocument) -> int:
    """Return what a document costs in the limit of requests: as many texts of maximum length as its bytes can hold."""
    per_text = server.config.max_characters
    return max(1, len(document.content) // per_text) if per_text else 1


def document_languages(server: ServerState, source: str, target: str) -> tuple[str, str]:
    """Return the codes of a document's languages. The source is "" if it is to be detected ("auto").

    Refuses languages that are not served.
    """
    source = "" if source.strip().lower() == "auto" else require_code(source, server.models)
    target = require_code(target, server.models)
    if source and not server.models.is_same(source, target):
        server.models.pair(source, target)
    return source, target


async def read_upload(server: ServerState, document: UploadedDocument) -> tuple[DocumentPlan, int]:
    """Plan the translation of a document, count its texts for the log line of the request, and count its characters.

    Refuses a document that its format cannot read. Raises `DeadlineExceeded` if reading takes longer than a request
    may.
    """

    def read(process: DocumentProcess) -> Document:
        return process.read(document.content, document.kind, document.options)

    async with within(server.config.request_timeout):
        plan = await _plan(server, await server.documents.run(read), document.source, document.target)
    count_texts(all_sentences([plan]))
    return plan, sum(len(one.text) for one, some in zip(plan.document.units, plan.sentences, strict=True) if some)


async def _plan(server: ServerState, document: Document, source: str, target: str) -> DocumentPlan:
    """Plan the translation of a document. A source language of "" means unknown."""
    translator = None
    if source and not server.models.is_same(source, target):
        translator = await server.scheduler.translator(server.models.pair(source, target))
    return await asyncio.to_thread(plan_document, document, translator, languages=(source, target))


async def translate_upload(
    server: ServerState,
    document: UploadedDocument,
    plan: DocumentPlan,
    glossary: tuple[tuple[str, str], ...] = (),
    on_progress: Progress = lambda *_: None,
) -> tuple[bytes, str]:
    """Translate a document into its target language, and name the result. A missing source language is detected.

    `on_progress` is called with the number of translated sentences and their total.
    """
    source, target, content = document.source, document.target, document.content
    stem, dot, ending = document.name.rpartition(".")
    name = f"{stem}_{target}{dot}{ending}"
    if not source:
        text = "\n".join(unit.text for unit in plan.document.units[:_DETECTED_UNITS])
        source = (await asyncio.to_thread(server.detector.find_source, text, target)).language
        plan = await _plan(server, plan.document, source, target)
    if server.models.is_same(source, target):
        return content, name
    key = server.models.pair(source, target)
    if not (plan.aligned or plan.plain):
        return content, name
    translations = await translate_plans(server, key, [plan], TranslationOptions(glossary=glossary), on_progress)

    def write(process: DocumentProcess) -> bytes:
        def written(results: Sequence[UnitTranslation | None]) -> bytes:
            return process.write(content, document.kind, document.options, results)

        return finish_document(plan._replace(document=replace(plan.document, write=written)), translations).data

    async with within(server.config.request_timeout):
        return await server.documents.run(write), name


def safe_name(filename: str) -> str:
    """Return the last part of a file's name, without control characters and signs that paths or headers use."""
    name = PurePosixPath(unicodedata.normalize("NFC", filename).replace("\\", "/")).name
    name = re.sub(r"[^\w.() -]", "_", name).strip(". ")
    return name[-100:] or "document"


def attachment(file: StoredFile) -> Response:
    """Answer with a file that a browser saves and never displays, whatever it contains."""
    plain = file.name.encode("ascii", "replace").decode().replace("?", "_")
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name)}"
    return FileResponse(file.path, media_type="application/octet-stream", headers={"Content-Disposition": disposition})
