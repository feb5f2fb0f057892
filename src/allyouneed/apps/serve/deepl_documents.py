"""DeepL's documents: uploaded, translated in the background, and fetched when they are done."""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from . import deepl_schema as schema
from .deepl import charge, read_deepl_request, read_terms, refuse_unsupported, require_deepl_code
from .refusals import Refusal
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

router = APIRouter(prefix="/v2", tags=["DeepL"], dependencies=[OwnPages])


@router.post("/document", **schema.UPLOAD_DOCUMENT)
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


@router.post("/document/{document}", **schema.DOCUMENT_STATUS)
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


@router.post("/document/{document}/result", **schema.DOCUMENT_RESULT)
async def fetch_document(document: str, request: Request, server: Server) -> Response:
    """Fetch a translated document."""
    job = await _find_job(document, request, server)
    return attachment(await asyncio.to_thread(server.jobs.result, job))


async def _find_job(document: str, request: Request, server: ServerState) -> DocumentJob:
    fields, _ = await read_deepl_request(request, server)
    return server.jobs.find(document, fields.text("document_key"))
