"""The process that serves the page of a training run; `training_page` starts it and says what is new."""

import logging
import os
import signal
import sys
import threading
from pathlib import Path

from ...errors import ConfigError
from ...files import parse_json, to_json
from .app import assemble
from .models import ModelStore
from .options import ServeConfig
from .server import listen, run_server, url
from .training import TrainingState


class _TrainingConfig(ServeConfig):
    drain_timeout = 2.0


def run_training_server() -> None:
    """Serve until standard input ends; its first line has the options, each other one what is new."""
    options = parse_json(sys.stdin.readline())
    # No page of another origin may read what the page shows: it has the pairs of the run.
    config = _TrainingConfig(suggestions=options["corrections"], cors_origins=(), workers=1)
    Path(config.suggestions).parent.mkdir(parents=True, exist_ok=True)
    models = ModelStore([], config)
    training = TrainingState(models)
    try:
        listener = listen(config.host, options["port"])
    except ConfigError:
        listener = listen(config.host, 0)
    app = assemble(config, models, training)

    def begin() -> None:
        logging.getLogger("allyouneed.apps.serve").setLevel(logging.WARNING)  # no line a request
        print(to_json({"url": url(listener)}), flush=True)
        threading.Thread(target=_follow, args=(training,), daemon=True).start()

    run_server(app, listener, config, on_ready=begin)
    if (store := Path(config.suggestions)).is_file() and not store.stat().st_size:
        store.unlink()  # nothing was corrected


def _follow(training: TrainingState) -> None:
    for line in sys.stdin:
        training.tell(parse_json(line))
    os.kill(os.getpid(), signal.SIGTERM)  # the server's own way to stop


if __name__ == "__main__":
    run_training_server()
