"""A real server on a free port of the loopback, for clients that speak HTTP themselves."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from allyouneed.apps.serve.connections import limit_connections


@contextmanager
def running(app: ASGIApp, *, header_timeout: float = 10.0, body_timeout: float = 30.0) -> Iterator[str]:
    """Run a server while the block does, and yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False, ws="none"))
    limit_connections(server.config, header_timeout=header_timeout, body_timeout=body_timeout)
    with server.config.bind_socket() as listener:
        listener.listen()  # clients may connect while the server starts
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
