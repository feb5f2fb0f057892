"""What native routes have in common: the client that a request may come from (`Admitted`), and its body."""

from typing import Annotated

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, model_validator

from .access import Client
from .request_fields import require_unicode
from .server_state import Server


class NativeBody(BaseModel):
    """A body of JSON with known fields. Refuses text that is not Unicode."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _require_unicode(cls, values: object) -> object:
        if isinstance(values, dict):
            require_unicode(values)
        return values


async def admit_client(request: Request, server: Server) -> Client:
    """The client of a request, by the key in its Authorization header. Refuses as `Access.identify` does."""
    return server.access.identify(request)


Admitted = Annotated[Client, Depends(admit_client)]
