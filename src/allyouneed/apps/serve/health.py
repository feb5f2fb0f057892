"""Whether the server is alive, and whether it can take requests; and its metrics."""

import asyncio

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from .server_state import OwnPages, Server

router = APIRouter(tags=["operation"])
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health(BaseModel):
    """The state of the server."""

    status: str


@router.get("/health")
async def health() -> Health:
    """Say that the process is alive."""
    return Health(status="ok")


@router.get("/ready", response_model=Health, responses={503: {"model": Health}})
async def ready(server: Server) -> JSONResponse:
    """Say whether new requests should come here: not while the server starts or stops, or a model is missing."""
    status: str = server.monitoring.status
    if status == "ready" and len(await asyncio.to_thread(server.models.missing)):
        status = "model missing"
    return JSONResponse({"status": status}, 200 if status == "ready" else 503)


@router.get(
    "/metrics", dependencies=[OwnPages], response_class=Response, responses={200: {"content": {"text/plain": {}}}}
)
async def metrics(server: Server) -> Response:
    """Read the metrics in the text format of Prometheus."""
    return Response(server.monitoring.metrics(), media_type=METRICS_TYPE)
