"""The process of a server: its socket, its logs, and how it stops."""

import gc
import json
import logging
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType

import uvicorn
from fastapi import FastAPI

from ...errors import ConfigError, Interrupted
from .connections import limit_connections
from .options import ServeConfig


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that accepts connections on an address. Refuses an address in use or not on this machine."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror}; --port chooses another port, --host an address"
        ) from error


def url(listener: socket.socket) -> str:
    """Return the address at which a browser on this machine finds the server."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_server(app: FastAPI, listener: socket.socket, config: ServeConfig, *, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; then accept no more requests, finish running ones, and return.

    Raises `Interrupted` if a second signal, or the end of `drain_timeout`, broke off running requests.
    """
    _log_as_json()
    server = _Server(
        uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=max(1, round(config.drain_timeout)),
        ),
        on_ready,
        on_stop=app.state.server.monitoring.drain,
    )
    limit_connections(server.config, header_timeout=config.header_timeout, body_timeout=config.body_timeout)
    server.run(sockets=[listener])
    if server.force_exit:
        app.state.server.scheduler.close(abort=True)  # a process must not end while its threads compute
        raise Interrupted("stopped by a second signal; requests were broken off", signal=server.last_signal)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None], *, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready, self._on_stop = on_ready, on_stop
        self.last_signal = signal.SIGINT

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # The definitions of libraries stay until the end. Every garbage collection would examine all of them while each
        # request waits.
        gc.freeze()
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn's own method would end the process by the signal, and ignore a second SIGTERM.
        self.force_exit = self.should_exit
        self.should_exit, self.last_signal = True, signal.Signals(sig)
        self._on_stop()


class JsonFormatter(logging.Formatter):
    """Formats a log record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record with its time in UTC, level, message, `fields` and, after an error, the traceback."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": moment, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _log_as_json() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)  # warnings of libraries
    logging.captureWarnings(True)
    logging.getLogger("allyouneed.apps.serve").setLevel(logging.INFO)
    # Reports mistakes of clients, which their answers already describe.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
