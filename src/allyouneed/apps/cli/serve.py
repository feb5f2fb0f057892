"""`allyouneed serve`: translations over HTTP."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from ...errors import AllYouNeedError, MissingExtraError
from ...language_tags import language_name
from ..serve.options import ServeConfig
from .options import SearchSettings, with_config_options, with_search

SERVE_PANELS = {
    "Models": ("max_loaded_memory", "device", "precision", "workers", "reload_every"),
    "Access and limits": (
        "keys", "key_optional", "requests_per_minute", "allowed_hosts", "cors_origins", "max_queue", "request_timeout",
        "max_texts", "max_characters", "max_file",
    ),
    "Kept files": ("suggestions", "glossaries", "log_text"),
}  # fmt: skip


@with_config_options(ServeConfig, "options", panels=SERVE_PANELS, variables="ALLYOUNEED_SERVE_")
@with_search()
def serve(
    bundles: Annotated[
        list[str],
        typer.Argument(
            metavar="BUNDLE",
            help="Folders of models; BUNDLE=en-it, A,B for an ensemble.",
            show_default=False,
        ),
    ],
    *,
    options: dict[str, Any],
    decode: SearchSettings,
) -> None:
    """Serve models over HTTP, until Ctrl-C or SIGTERM.

    Each option is a variable too: ALLYOUNEED_SERVE_PORT is --port.

    For example:

      allyouneed serve runs/en-it

      allyouneed serve runs/en-it runs/small runs/dates
    """
    serve_bundles(bundles, ServeConfig(**options), decode)


def serve_bundles(
    bundles: Sequence[str],
    config: ServeConfig,
    decode: SearchSettings | None = None,
    *,
    on_ready: Callable[[str], object] | None = None,
) -> None:
    """Serve models until Ctrl-C or SIGTERM; `on_ready` gets the address once the server answers there."""
    from ...bundle import read_sizes
    from ...device import pick_device
    from ...fast.selection import compile_kernels
    from .screen import console

    try:
        from ..serve.access import exposure_warnings
        from ..serve.app import create_app
        from ..serve.server import listen, run_server, url
    except ImportError as error:
        if isinstance(error, AllYouNeedError):
            raise
        raise MissingExtraError("allyouneed serve", "serve") from error

    app = create_app(bundles, config, decode=decode)
    device = pick_device(config.device)
    for folder in app.state.server.models.folders():
        compile_kernels(read_sizes(folder), console.print, precision=config.precision, device=device)
    listener = listen(config.host, config.port)
    pairs = ", ".join(
        f"{language_name(source)} → {language_name(target)} ({source}-{target})"
        for source, target in app.state.server.models.pairs()
    )

    def announce() -> None:
        console.print(f"Serving {pairs}\nat {url(listener)}; Ctrl-C stops it.", highlight=False)
        for warning in exposure_warnings(config):
            console.print(f"Warning: {warning}.", highlight=False)
        if on_ready:
            on_ready(url(listener))

    run_server(app, listener, config, on_ready=announce)
