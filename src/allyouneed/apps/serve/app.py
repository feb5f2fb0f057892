"""The application: one router for each API, all with the same `ServerState`; health checks and metrics."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from ...errors import ConfigError
from ...machine.device import retain_freed_memory
from . import deepl, deepl_glossaries, libretranslate, native, uploads, web_page
from .access import Access
from .bodies import ERRORS
from .document_processes import DocumentProcesses
from .glossary_store import GlossaryStore
from .languages import Detector
from .middleware import add_middleware
from .models import ModelSource, ModelStore, in_background, reload_models
from .monitoring import LoadedModels, Monitoring
from .options import ServeConfig
from .refusals import install_error_handlers
from .scheduler import Scheduler
from .server_state import OwnPages, Server, ServerState
from .suggestions import SuggestionStore
from .translated_documents import DocumentJobs, StoredFiles

if TYPE_CHECKING:
    from .training import TrainingState


router = APIRouter(tags=["operation"])
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health(BaseModel):
    """The state of the server."""

    status: str


@router.get("/health")
async def health() -> Health:
    """Report that the process is alive."""
    return Health(status="ok")


@router.get("/ready", response_model=Health, responses={503: {"model": Health}})
async def ready(server: Server) -> JSONResponse:
    """Report whether the server takes new requests. It does not while it starts or stops, or a model is missing."""
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


def create_app(
    bundles: Sequence[str | Path],
    config: ServeConfig | None = None,
    *,
    decode: Mapping[str, object] | None = None,
) -> FastAPI:
    """Create an ASGI application that serves `bundles`, each a folder, or `FOLDER=en-it` to name its languages.

    The settings in `decode`, fields of `DecodeConfig`, replace the bundles' own. Refuses settings that a bundle cannot
    have, and two bundles for the same pair of languages.
    """
    config = config or ServeConfig()
    if not bundles:
        raise ConfigError("a server needs at least one bundle")
    sources = [ModelSource.parse(bundle) for bundle in bundles]
    for source in sources:
        source.require_settings(decode or {})
    return assemble(config, ModelStore(sources, config, decode))


def assemble(config: ServeConfig, models: ModelStore, training: "TrainingState | None" = None) -> FastAPI:
    """Build the application with models that already exist, or with the models of a training run."""
    monitoring = Monitoring()
    scheduler = Scheduler(
        models, monitoring, workers=config.workers, max_queue=config.max_queue, timeout=config.request_timeout
    )
    monitoring.registry.register(LoadedModels(models.memory))
    stored = StoredFiles(lifetime=config.file_lifetime, max_size=config.max_files_size)
    server = ServerState(
        config,
        models,
        scheduler,
        monitoring,
        Access(config),
        Detector(models),
        stored,
        DocumentJobs(stored, lifetime=config.file_lifetime),
        DocumentProcesses(max_file=config.max_file),
        SuggestionStore(config.suggestions, max_size=config.max_suggestions_size) if config.suggestions else None,
        GlossaryStore(config.glossaries, max_terms=config.max_terms),
        training,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        retain_freed_memory()
        scheduler.start()
        if len(models.pairs()) == 1:
            for key in models.pairs():
                await asyncio.to_thread(models.load, key)
        reloading, sweeping = reload_models(models, every=config.reload_every), stored.sweep()
        with closing(stored):
            async with in_background(reloading), in_background(sweeping), server.documents, server.jobs:
                monitoring.status = "ready"
                yield
                monitoring.drain()
        await asyncio.to_thread(scheduler.close)
        server.glossaries.close()

    app = FastAPI(
        title="allyouneed",
        version=version("allyouneed"),
        lifespan=lifespan,
        openapi_url="/spec",
        docs_url=None,  # FastAPI's page loads scripts from a network
        redoc_url=None,
    )
    app.state.server = server
    install_error_handlers(app)
    add_middleware(app, config, monitoring)
    app.include_router(router, responses=ERRORS)
    for api in (libretranslate, uploads, native, deepl, deepl_glossaries, web_page):
        app.include_router(api.router, responses=ERRORS)
    # Where most programs look for the description; LibreTranslate has it under /spec.
    app.add_api_route("/openapi.json", lambda: JSONResponse(app.openapi()), include_in_schema=False)
    if training:
        app.include_router(import_module(".training", __package__).router)
    return app
