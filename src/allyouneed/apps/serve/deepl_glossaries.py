"""DeepL's glossaries: version 2, one pair of languages each, and version 3, several; both are one store."""

import asyncio
import csv
import io
from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from . import deepl_schema as schema
from .access import Client
from .deepl import charge, read_deepl_request
from .glossary_store import Entries, LanguagePair, StoredGlossary
from .languages import base_language
from .refusals import Refusal
from .request_fields import Fields, checked_terms, require_code
from .server_state import OwnPages, Server, ServerState

router = APIRouter(tags=["DeepL"], dependencies=[OwnPages])

_MAX_DICTIONARIES = 50
_MAX_NAME = 1_000  # characters


@router.get("/v2/glossary-language-pairs", **schema.GLOSSARY_PAIRS)
async def list_glossary_pairs(request: Request, server: Server) -> JSONResponse:
    """List the pairs of languages that glossaries can have: those that are served."""
    await _admit(request, server)
    return JSONResponse({"supported_languages": [_languages(pair) for pair in _served_pairs(server)]})


@router.post("/v2/glossaries", status_code=201, **schema.CREATE_GLOSSARY)
async def create_glossary(request: Request, server: Server) -> JSONResponse:
    """Make a glossary of one pair of languages."""
    fields, client = await _admit(request, server)
    values = {name: fields.get(name) for name in ("source_lang", "target_lang", "entries", "entries_format")}
    pair, terms = _read_dictionary(server, values)
    glossary = await asyncio.to_thread(server.glossaries.create, client.account, _name(fields), {pair: terms})
    return JSONResponse(_describe_v2(glossary), 201)


@router.get("/v2/glossaries", **schema.LIST_GLOSSARIES)
async def list_glossaries(request: Request, server: Server) -> JSONResponse:
    """List the glossaries of this key that have one pair of languages."""
    _, client = await _admit(request, server)
    glossaries = await asyncio.to_thread(server.glossaries.list_all, client.account)
    return JSONResponse({"glossaries": [_describe_v2(one) for one in glossaries if len(one.counts) == 1]})


@router.get("/v2/glossaries/{glossary}", **schema.SHOW_GLOSSARY)
async def show_glossary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Describe a glossary."""
    _, client = await _admit(request, server)
    return JSONResponse(_describe_v2(await _with_one_pair(server, client, glossary)))


@router.get("/v2/glossaries/{glossary}/entries", **schema.SHOW_ENTRIES)
async def show_glossary_entries(glossary: str, request: Request, server: Server) -> Response:
    """Write the terms of a glossary, one a line."""
    _, client = await _admit(request, server)
    (pair,) = (await _with_one_pair(server, client, glossary)).counts
    terms = await asyncio.to_thread(server.glossaries.terms, client.account, glossary, pair)
    return Response(_write_tsv(terms), media_type="text/tab-separated-values")


@router.delete("/v2/glossaries/{glossary}", status_code=204, **schema.DELETE)
@router.delete("/v3/glossaries/{glossary}", status_code=204, **schema.DELETE)
async def delete_glossary(glossary: str, request: Request, server: Server) -> Response:
    """Delete a glossary."""
    _, client = await _admit(request, server)
    await asyncio.to_thread(server.glossaries.delete, client.account, glossary)
    return Response(status_code=204)


@router.post("/v3/glossaries", status_code=201, **schema.CREATE_MULTILINGUAL)
async def create_multilingual_glossary(request: Request, server: Server) -> JSONResponse:
    """Make a glossary of several pairs of languages."""
    fields, client = await _admit(request, server)
    dictionaries = _read_dictionaries(server, fields)
    if not dictionaries:
        raise Refusal(400, "Bad request: Value for 'dictionaries' not specified.")
    glossary = await asyncio.to_thread(server.glossaries.create, client.account, _name(fields), dictionaries)
    return JSONResponse(_describe_v3(glossary), 201)


@router.get("/v3/glossaries", **schema.LIST_MULTILINGUAL)
async def list_multilingual_glossaries(request: Request, server: Server) -> JSONResponse:
    """List the glossaries of this key."""
    _, client = await _admit(request, server)
    glossaries = await asyncio.to_thread(server.glossaries.list_all, client.account)
    return JSONResponse({"glossaries": [_describe_v3(one) for one in glossaries]})


@router.get("/v3/glossaries/{glossary}", **schema.SHOW_MULTILINGUAL)
async def show_multilingual_glossary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Describe a glossary."""
    _, client = await _admit(request, server)
    return JSONResponse(_describe_v3(await asyncio.to_thread(server.glossaries.find, client.account, glossary)))


@router.patch("/v3/glossaries/{glossary}", **schema.CHANGE_MULTILINGUAL)
async def change_multilingual_glossary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Rename a glossary, or add terms to it."""
    fields, client = await _admit(request, server)
    name, dictionaries = None if fields.get("name") is None else _name(fields), _read_dictionaries(server, fields)
    changed = await asyncio.to_thread(server.glossaries.change, client.account, glossary, name, dictionaries)
    return JSONResponse(_describe_v3(changed))


@router.get("/v3/glossaries/{glossary}/entries", **schema.SHOW_DICTIONARY)
async def show_dictionary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Write the terms of a glossary for one pair of languages."""
    fields, client = await _admit(request, server)
    pair = _read_pair(server, fields.get("source_lang"), fields.get("target_lang"))
    terms = await asyncio.to_thread(server.glossaries.terms, client.account, glossary, pair)
    dictionary = {**_languages(pair), "entries": _write_tsv(terms), "entries_format": "tsv"}
    return JSONResponse({"dictionaries": [dictionary]})


@router.put("/v3/glossaries/{glossary}/dictionaries", **schema.REPLACE_DICTIONARY)
async def replace_dictionary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Replace the terms of a glossary for one pair of languages."""
    fields, client = await _admit(request, server)
    values = {name: fields.get(name) for name in ("source_lang", "target_lang", "entries", "entries_format")}
    pair, terms = _read_dictionary(server, values)
    await asyncio.to_thread(server.glossaries.replace_terms, client.account, glossary, pair, terms)
    return JSONResponse({**_languages(pair), "entry_count": len(terms)})


@router.delete("/v3/glossaries/{glossary}/dictionaries", status_code=204, **schema.DELETE)
async def delete_dictionary(glossary: str, request: Request, server: Server) -> Response:
    """Delete the terms of a glossary for one pair of languages."""
    fields, client = await _admit(request, server)
    pair = _read_pair(server, fields.get("source_lang"), fields.get("target_lang"))
    await asyncio.to_thread(server.glossaries.delete_terms, client.account, glossary, pair)
    return Response(status_code=204)


async def _admit(request: Request, server: ServerState) -> tuple[Fields, Client]:
    fields, client = await read_deepl_request(request, server)
    charge(server, client, cost=1, characters=0)
    return fields, client


def _name(fields: Fields) -> str:
    name = fields.text("name")
    if not name.strip() or len(name) > _MAX_NAME:
        raise Refusal(400, f"Bad request: the name of a glossary has 1 to {_MAX_NAME} characters")
    return name


def _read_dictionaries(server: ServerState, fields: Fields) -> dict[LanguagePair, Entries]:
    values = fields.get("dictionaries") or []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise Refusal(400, "Bad request: 'dictionaries' must be a list of objects")
    if len(values) > _MAX_DICTIONARIES:
        raise Refusal(400, f"Bad request: a glossary has at most {_MAX_DICTIONARIES} dictionaries")
    dictionaries: dict[LanguagePair, Entries] = {}
    for value in values:
        pair, terms = _read_dictionary(server, value)
        if pair in dictionaries:
            raise Refusal(400, f"Bad request: 'dictionaries' has {'-'.join(pair)} twice; join their entries")
        dictionaries[pair] = terms
    return dictionaries


def _read_dictionary(server: ServerState, values: dict[str, object]) -> tuple[LanguagePair, Entries]:
    pair = _read_pair(server, values.get("source_lang"), values.get("target_lang"))
    if pair not in _served_pairs(server):
        raise Refusal(400, f"Bad request: no model here translates {'-'.join(pair)}, so that it has no glossaries")
    entries, form = values.get("entries"), values.get("entries_format") or "tsv"
    if not isinstance(entries, str) or form not in ("tsv", "csv"):
        raise Refusal(400, "Bad request: 'entries' must be a string, and 'entries_format' must be tsv or csv")
    rows: Sequence[Sequence[str]]
    if form == "csv":
        try:
            rows = list(csv.reader(io.StringIO(entries)))
        except csv.Error as error:
            raise Refusal(400, f"Bad request: 'entries' is not CSV: {error}") from None
    else:
        rows = [line.split("\t") for line in entries.replace("\r\n", "\n").split("\n")]
    terms: Entries = {}
    for number, row in enumerate(rows, start=1):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != 2 and not (form == "csv" and len(row) == 4):  # CSV may have the two language codes as well
            raise Refusal(400, f"Bad request: line {number} of 'entries' must be a term and its translation")
        term = " ".join(row[0].split())
        if term in terms:
            raise Refusal(400, f"Bad request: line {number} of 'entries' has {term!r:.60} for a second time")
        terms[term] = row[1].strip()
    if not terms:
        raise Refusal(400, "Bad request: Value for 'entries' not specified.")
    return pair, dict(checked_terms(terms, server.config))


def _read_pair(server: ServerState, source: object, target: object) -> LanguagePair:
    if not (isinstance(source, str) and source and isinstance(target, str) and target):
        raise Refusal(400, "Bad request: Value for 'source_lang' or 'target_lang' not specified.")
    codes = server.models.codes()
    return base_language(require_code(source, codes)), base_language(require_code(target, codes))


def _served_pairs(server: ServerState) -> list[LanguagePair]:
    keys = server.models.pairs()
    return list(dict.fromkeys((base_language(key.source), base_language(key.target)) for key in keys))


async def _with_one_pair(server: ServerState, client: Client, identifier: str) -> StoredGlossary:
    glossary = await asyncio.to_thread(server.glossaries.find, client.account, identifier)
    if len(glossary.counts) != 1:
        raise Refusal(404, "Glossary not found")
    return glossary


def _describe_v2(glossary: StoredGlossary) -> dict[str, object]:
    ((pair, count),) = glossary.counts.items()
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": True,
        **_languages(pair),
        "creation_time": glossary.created,
        "entry_count": count,
    }


def _describe_v3(glossary: StoredGlossary) -> dict[str, object]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "creation_time": glossary.created,
        "dictionaries": [{**_languages(pair), "entry_count": count} for pair, count in glossary.counts.items()],
    }


def _languages(pair: LanguagePair) -> dict[str, str]:
    return {"source_lang": pair[0], "target_lang": pair[1]}


def _write_tsv(terms: Entries) -> str:
    return "\n".join(f"{term}\t{translation}" for term, translation in terms.items())
