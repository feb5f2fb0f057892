"""`allyouneed serve`: translations over HTTP."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import DecodeConfig
from ..serve.options import ServeConfig
from .config_options import with_config_options
from .search_options import SearchSettings

if TYPE_CHECKING:
    import socket

SEARCH = tuple(DecodeConfig.__dataclass_fields__)


@with_config_options(ServeConfig, "options", panels={}, variables="ALLYOUNEED_SERVE_")
@with_config_options(DecodeConfig, "decode", panels={"Search": SEARCH})
def serve(
    bundles: Annotated[
        list[str],
        typer.Argument(
            metavar="BUNDLE…", help="Folders of trained models; BUNDLE=en-it names its languages.", show_default=False
        ),
    ],
    *,
    options: dict[str, Any],
    decode: SearchSettings,
) -> None:
    """Serve models over HTTP, until Ctrl-C or SIGTERM.

    Every option of the server is an environment variable too: ALLYOUNEED_SERVE_PORT for --port.

    [bold]Examples[/bold]

      allyouneed serve runs/en-it

      allyouneed serve runs/en-it runs/it-en --port 8000

      allyouneed serve runs/dates=en-it
    """
    from ..errors import MissingExtraError
    from .screen import console

    config = ServeConfig(**options)
    try:
        import uvicorn

        from ..serve.app import create_app
    except ImportError as error:
        raise MissingExtraError("serving", "serve") from error

    app = create_app(bundles, config, decode=decode)
    listener = _listen(config)
    host, port = listener.getsockname()[:2]
    pairs = ", ".join(str(key) for key in app.state.server.models.pairs())
    console.print(f"Serving {pairs} on http://{f'[{host}]' if ':' in host else host}:{port}; Ctrl-C stops it.")
    uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=round(config.drain_timeout)
        )
    ).run(sockets=[listener])


def _listen(config: ServeConfig) -> "socket.socket":
    import socket

    from ..errors import ConfigError

    try:
        family, _, _, _, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {config.host}, port {config.port}: {error.strerror}; --port chooses another"
        ) from error
