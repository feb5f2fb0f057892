"""What the routers share: `Server` is the dependency of a route that needs it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from .access import Access
from .detection import Detector
from .document_jobs import DocumentJobs
from .document_processes import DocumentProcesses
from .glossary_store import GlossaryStore
from .models import ModelStore
from .monitoring import Monitoring
from .options import ServeConfig
from .scheduler import Scheduler
from .stored_files import StoredFiles
from .suggestions import SuggestionStore

if TYPE_CHECKING:
    from .training import TrainingState


@dataclass(frozen=True, slots=True)
class ServerState:
    """The parts of one running server; `app.state.server` holds it."""

    config: ServeConfig
    models: ModelStore
    scheduler: Scheduler
    monitoring: Monitoring
    access: Access
    detector: Detector
    uploads: StoredFiles
    jobs: DocumentJobs
    documents: DocumentProcesses
    suggestions: SuggestionStore | None
    glossaries: GlossaryStore
    training: "TrainingState | None" = None  # the run whose page it serves


async def server_state(request: Request) -> ServerState:
    """The state of the application that a request came to. A coroutine, because FastAPI runs others in threads."""
    state: ServerState = request.app.state.server
    return state


Server = Annotated[ServerState, Depends(server_state)]
