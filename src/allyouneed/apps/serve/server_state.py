"""What all routers share: `Server`, the client that is `Admitted`, `OwnPages`, and the bodies of our own API."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, model_validator

from .access import Access, Client
from .document_processes import DocumentProcesses
from .glossary_store import GlossaryStore
from .languages import Detector
from .models import ModelStore
from .monitoring import Monitoring
from .options import ServeConfig
from .refusals import Refusal
from .request_fields import require_unicode
from .scheduler import Scheduler
from .suggestions import SuggestionStore
from .translated_documents import DocumentJobs, StoredFiles

if TYPE_CHECKING:
    from .training import TrainingState


@dataclass(frozen=True, slots=True)
class ServerState:
    """The parts of a running server, stored in `app.state.server`."""

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
    training: "TrainingState | None" = None  # the run whose page is served


async def server_state(request: Request) -> ServerState:
    """Return the state of the application that received a request. It is async so that FastAPI starts no thread."""
    state: ServerState = request.app.state.server
    return state


Server = Annotated[ServerState, Depends(server_state)]


async def refuse_other_pages(request: Request, server: Server) -> None:
    """Refuse a request from a page of another origin, unless allowed. CORS does not stop forms from being sent."""
    origin = request.headers.get("origin")
    is_other = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if is_other and origin not in server.config.cors_origins:
        raise Refusal(403, "pages of other origins may not store anything here, nor read other data")


OwnPages = Depends(refuse_other_pages)


class NativeBody(BaseModel):
    """A JSON body with known fields. Refuses text that is not Unicode."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _require_unicode(cls, values: object) -> object:
        if isinstance(values, dict):
            require_unicode(values)
        return values


async def admit_client(request: Request, server: Server) -> Client:
    """Identify the client of a request by the key in its Authorization header. Refuses as `Access.identify` does."""
    return server.access.identify(request)


Admitted = Annotated[Client, Depends(admit_client)]
