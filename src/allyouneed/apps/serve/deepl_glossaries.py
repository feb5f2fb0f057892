"""DeepL's glossaries: version 2 with one pair of languages each, version 3 with several. Both are in the same store."""

import asyncio
import csv
import io
from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from .access import Client
from .bodies import described
from .deepl import read_deepl
from .deepl_bodies import (
    DEEPL_ERRORS,
    DICTIONARY,
    ENTRIES,
    GLOSSARIES_OF_PAIR,
    GLOSSARIES_OF_PAIRS,
    GLOSSARY_OF_PAIR,
    GLOSSARY_OF_PAIRS,
    PAIRS,
    ChangesBody,
    DeepLBody,
    DictionariesBody,
    Dictionary,
    DictionaryBody,
    GlossaryBody,
    PairBody,
)
from .glossary_store import Entries, LanguagePair, StoredGlossary
from .languages import base_language
from .refusals import Refusal
from .request_fields import checked_terms, require_code
from .server_state import OwnPages, Server, ServerState

router = APIRouter(tags=["DeepL"], dependencies=[OwnPages], responses=DEEPL_ERRORS)
_DELETED = {"description": "deleted"}
_TSV = {
    "description": "a term, a tab and its translation on each line",
    "content": {"text/tab-separated-values": {"schema": {"type": "string"}}},
}


@router.get("/v2/glossary-language-pairs", **described(PAIRS))
async def list_glossary_pairs(request: Request, server: Server) -> JSONResponse:
    """List the pairs of languages that glossaries can have: all pairs that are served."""
    await read_deepl(request, server, DeepLBody, cost=1)
    return JSONResponse({"supported_languages": [_languages(pair) for pair in _served_pairs(server)]})


@router.post("/v2/glossaries", **described(GLOSSARY_OF_PAIR, GlossaryBody, status=201))
async def create_glossary(request: Request, server: Server) -> JSONResponse:
    """Create a glossary for one pair of languages."""
    body, client = await read_deepl(request, server, GlossaryBody, cost=1)
    dictionaries = _read_dictionaries(server, [body])
    glossary = await asyncio.to_thread(server.glossaries.create, client.account, body.name, dictionaries)
    return JSONResponse(_describe_v2(glossary), 201)


@router.get("/v2/glossaries", **described(GLOSSARIES_OF_PAIR))
async def list_glossaries(request: Request, server: Server) -> JSONResponse:
    """List the glossaries of this key that have one pair of languages."""
    _, client = await read_deepl(request, server, DeepLBody, cost=1)
    glossaries = await asyncio.to_thread(server.glossaries.list_all, client.account)
    return JSONResponse({"glossaries": [_describe_v2(one) for one in glossaries if len(one.counts) == 1]})


@router.get("/v2/glossaries/{glossary}", **described(GLOSSARY_OF_PAIR))
async def show_glossary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Describe a glossary."""
    _, client = await read_deepl(request, server, DeepLBody, cost=1)
    return JSONResponse(_describe_v2(await _with_one_pair(server, client, glossary)))


@router.get("/v2/glossaries/{glossary}/entries", **described(_TSV))
async def show_glossary_entries(glossary: str, request: Request, server: Server) -> Response:
    """Return the terms of a glossary, one per line."""
    _, client = await read_deepl(request, server, DeepLBody, cost=1)
    (pair,) = (await _with_one_pair(server, client, glossary)).counts
    terms = await asyncio.to_thread(server.glossaries.terms, client.account, glossary, pair)
    return Response(_write_tsv(terms), media_type="text/tab-separated-values")


@router.delete("/v2/glossaries/{glossary}", **described(_DELETED, status=204))
@router.delete("/v3/glossaries/{glossary}", **described(_DELETED, status=204))
async def delete_glossary(glossary: str, request: Request, server: Server) -> Response:
    """Delete a glossary."""
    _, client = await read_deepl(request, server, DeepLBody, cost=1)
    await asyncio.to_thread(server.glossaries.delete, client.account, glossary)
    return Response(status_code=204)


@router.post("/v3/glossaries", **described(GLOSSARY_OF_PAIRS, DictionariesBody, status=201))
async def create_multilingual_glossary(request: Request, server: Server) -> JSONResponse:
    """Create a glossary for several pairs of languages."""
    body, client = await read_deepl(request, server, DictionariesBody, cost=1)
    dictionaries = _read_dictionaries(server, body.dictionaries)
    glossary = await asyncio.to_thread(server.glossaries.create, client.account, body.name, dictionaries)
    return JSONResponse(_describe_v3(glossary), 201)


@router.get("/v3/glossaries", **described(GLOSSARIES_OF_PAIRS))
async def list_multilingual_glossaries(request: Request, server: Server) -> JSONResponse:
    """List the glossaries of this key."""
    _, client = await read_deepl(request, server, DeepLBody, cost=1)
    glossaries = await asyncio.to_thread(server.glossaries.list_all, client.account)
    return JSONResponse({"glossaries": [_describe_v3(one) for one in glossaries]})


@router.get("/v3/glossaries/{glossary}", **described(GLOSSARY_OF_PAIRS))
async def show_multilingual_glossary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Describe a glossary."""
    _, client = await read_deepl(request, server, DeepLBody, cost=1)
    return JSONResponse(_describe_v3(await asyncio.to_thread(server.glossaries.find, client.account, glossary)))


@router.patch("/v3/glossaries/{glossary}", **described(GLOSSARY_OF_PAIRS, ChangesBody))
async def change_multilingual_glossary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Rename a glossary, or add terms to it."""
    body, client = await read_deepl(request, server, ChangesBody, cost=1)
    dictionaries = _read_dictionaries(server, body.dictionaries)
    changed = await asyncio.to_thread(server.glossaries.change, client.account, glossary, body.name, dictionaries)
    return JSONResponse(_describe_v3(changed))


@router.get("/v3/glossaries/{glossary}/entries", **described(ENTRIES))
async def show_dictionary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Return the terms of a glossary for one pair of languages."""
    body, client = await read_deepl(request, server, PairBody, cost=1)
    pair = _read_pair(server, body)
    terms = await asyncio.to_thread(server.glossaries.terms, client.account, glossary, pair)
    dictionary = {**_languages(pair), "entries": _write_tsv(terms), "entries_format": "tsv"}
    return JSONResponse({"dictionaries": [dictionary]})


@router.put("/v3/glossaries/{glossary}/dictionaries", **described(DICTIONARY, DictionaryBody))
async def replace_dictionary(glossary: str, request: Request, server: Server) -> JSONResponse:
    """Replace the terms of a glossary for one pair of languages."""
    body, client = await read_deepl(request, server, DictionaryBody, cost=1)
    ((pair, terms),) = _read_dictionaries(server, [body]).items()
    await asyncio.to_thread(server.glossaries.replace_terms, client.account, glossary, pair, terms)
    return JSONResponse({**_languages(pair), "entry_count": len(terms)})


@router.delete("/v3/glossaries/{glossary}/dictionaries", **described(_DELETED, status=204))
async def delete_dictionary(glossary: str, request: Request, server: Server) -> Response:
    """Delete the terms of a glossary for one pair of languages."""
    body, client = await read_deepl(request, server, PairBody, cost=1)
    pair = _read_pair(server, body)
    await asyncio.to_thread(server.glossaries.delete_terms, client.account, glossary, pair)
    return Response(status_code=204)


def _read_dictionaries(server: ServerState, values: Sequence[Dictionary]) -> dict[LanguagePair, Entries]:
    dictionaries: dict[LanguagePair, Entries] = {}
    for value in values:
        pair = _read_pair(server, value)
        if pair not in _served_pairs(server):
            raise Refusal(400, f"Bad request: no model here translates {'-'.join(pair)}, so that it has no glossaries")
        if pair in dictionaries:
            raise Refusal(400, f"Bad request: 'dictionaries' has {'-'.join(pair)} twice; join their entries")
        dictionaries[pair] = dict(checked_terms(_read_entries(value), server.config))
    return dictionaries


def _read_entries(dictionary: Dictionary) -> Entries:
    entries, form = dictionary.entries, dictionary.entries_format
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
        if len(row) != 2 and not (form == "csv" and len(row) == 4):  # CSV may also contain the two language codes
            raise Refusal(400, f"Bad request: line {number} of 'entries' must be a term and its translation")
        term = " ".join(row[0].split())
        if term in terms:
            raise Refusal(400, f"Bad request: line {number} of 'entries' has {term!r:.60} for a second time")
        terms[term] = row[1].strip()
    if not terms:
        raise Refusal(400, "Bad request: Value for 'entries' not specified.")
    return terms


def _read_pair(server: ServerState, body: PairBody | Dictionary) -> LanguagePair:
    source, target = (require_code(code, server.models) for code in (body.source_lang, body.target_lang))
    return base_language(source), base_language(target)


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
