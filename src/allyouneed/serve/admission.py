"""`Admitted` is the dependency of a native route: the client that a request may come from."""

from typing import Annotated

from fastapi import Depends, Request

from .access import Client
from .server_state import Server


async def admit_client(request: Request, server: Server) -> Client:
    """The client of a request, by the key in its Authorization header. Refuses as `Access.identify` does."""
    return server.access.identify(request)


Admitted = Annotated[Client, Depends(admit_client)]
