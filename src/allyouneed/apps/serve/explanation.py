"""The inside of a model for one text: attention, steps of the search and heads, as the page draws them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ...errors import InputError, Overloaded
from .languages import ModelKey
from .models import ModelStore
from .monitoring import count_texts
from .server_state import Admitted, NativeBody, Server

MAX_EXPLAINED_CHARACTERS = 300
_MAX_WAITING = 16

router = APIRouter(prefix="/v1", tags=["native"])


class ExplainRequest(NativeBody):
    """A text to translate and explain."""

    text: str
    source: str
    target: str


class _Explainer:
    """One thread that explains one text after another, beside those that translate."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="explain")
        self._waiting = 0

    async def explain(self, models: ModelStore, key: ModelKey, text: str) -> dict[str, Any]:
        if self._waiting >= _MAX_WAITING:
            raise Overloaded(f"{self._waiting} texts wait for an explanation already; try again in some seconds")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, lambda: describe_translation(models, key, text))
        finally:
            self._waiting -= 1


_explainer = _Explainer()


@router.post("/explain")
async def explain_text(body: ExplainRequest, server: Server, client: Admitted) -> JSONResponse:
    """Explain a translation: the attention of every head, the likeliest tokens at each step, and what each head does.

    The weights of attention are whole numbers from 0 to 255. Refuses texts of more than 300 characters.
    """
    if len(body.text) > MAX_EXPLAINED_CHARACTERS:
        raise InputError(
            f"a text of {len(body.text)} characters is too long to look inside; at most "
            f"{MAX_EXPLAINED_CHARACTERS} can be explained: give a sentence of it"
        )
    key = server.models.pair(body.source, body.target)
    server.access.charge(client, cost=1, characters=len(body.text))
    count_texts([body.text])
    return JSONResponse(await _explainer.explain(server.models, key, body.text))


def describe_translation(models: ModelStore, key: ModelKey, text: str) -> dict[str, Any]:
    """The trace of a translation as plain data."""
    from ..explain import attention_layers, describe_heads, search_steps, trace_translation  # loads matplotlib

    trace = trace_translation(models.translator(key), text)
    return {
        "text": trace.text,
        "translation": trace.translation,
        "decoder_targets": trace.decoder_targets,
        "note": trace.note,
        "ending": trace.search.explain_ending(),
        "attention": attention_layers(trace),
        "heads": [asdict(head) for head in describe_heads(trace)],
        "steps": search_steps(trace),
    }
