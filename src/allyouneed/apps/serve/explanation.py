"""The inside of a model for one text: the data of the page of `explain`, which the page of the server draws, too."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ...errors import InputError, Overloaded
from ..explain.page_data import build_page_data
from ..explain.trace import trace_translation
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
    """Explain a translation: attention, heads, search and every tensor, as the page of `allyouneed explain` draws them.

    Large arrays are packed as `unpack` of web/dom.js reads them. Refuses texts of more than 300 characters.
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
    """The trace of a translation as plain data, which web/explain.js of `explain` describes."""
    translator = models.translator(key)
    return build_page_data(trace_translation(translator, text), translator)
