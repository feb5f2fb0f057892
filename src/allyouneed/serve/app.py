"""The application: the APIs, one router each, over one `ServerState`."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI

from ..device import retain_freed_memory
from . import explanation, health, native, web_page
from .disconnects import CancelOnDisconnect
from .languages import ModelSource
from .models import ModelStore
from .monitoring import Monitoring
from .options import ServeConfig
from .reloading import Reloader
from .request_log import RequestLog
from .scheduler import Scheduler
from .server_state import ServerState

ROUTERS = (native.router, health.router, explanation.router, web_page.router)


def create_app(
    bundles: Sequence[str | Path],
    config: ServeConfig | None = None,
    *,
    decode: Mapping[str, object] | None = None,
) -> FastAPI:
    """An ASGI application that serves `bundles`, each a folder, or `FOLDER=en-it` to name its languages.

    `decode` holds settings of `DecodeConfig` that replace those of the bundles. Refuses bundles without languages,
    and two for the same pair.
    """
    config = config or ServeConfig()
    models = ModelStore([ModelSource.parse(bundle) for bundle in bundles], config, decode)
    return assemble(config, models)


def assemble(config: ServeConfig, models: ModelStore) -> FastAPI:
    """The application over models that exist already."""
    monitoring = Monitoring()
    scheduler = Scheduler(
        models, monitoring, workers=config.workers, max_queue=config.max_queue, timeout=config.request_timeout
    )
    monitoring.watch_models(lambda: {str(key): size for key, size in models.memory().items()})
    reloader = Reloader(models, every=config.reload_every)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        retain_freed_memory()
        scheduler.start()
        if config.preload or len(models.pairs()) == 1:
            for key in models.pairs():
                await asyncio.to_thread(models.load, key)
        async with reloader:
            monitoring.status = "ready"
            yield
            monitoring.status = "draining"
        await asyncio.to_thread(scheduler.close)

    app = FastAPI(title="allyouneed", version=version("allyouneed"), lifespan=lifespan)
    app.state.server = ServerState(config, models, scheduler, monitoring)
    app.add_middleware(CancelOnDisconnect)
    app.add_middleware(RequestLog, monitoring=monitoring, log_requests=config.log_requests, log_text=config.log_text)
    for router in ROUTERS:
        app.include_router(router)
    return app
