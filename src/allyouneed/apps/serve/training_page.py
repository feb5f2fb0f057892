"""The page of a training run: a server in a separate process, so that it does not slow the training down.

The training process writes reports to the server as lines of JSON; when the lines end, the server ends. A thread writes
them, so the training never waits for the server, whatever its state. This module imports no web framework before it
serves. The other process runs `run_training_server`.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from ...errors import ConfigError, MissingExtraError
from ...machine.files import parse_json, to_json
from ...machine.interpreter import end_with_parent, is_installed, python_command
from ...machine.interrupts import InterruptRequest

if TYPE_CHECKING:
    from ...run import TrainingCallback, Validation
    from ...train import Update
    from .training import TrainingState

EVERY = 1.0  # seconds between two lines on the progress
PATIENCE_SECONDS = 5.0  # for the server to end
SERVER = "allyouneed.apps.serve.training_page"


class TrainingPage:
    """The page of a run. Use it in a `with` statement, at whose end the server stops.

    `corrections` is the file for corrections. `port` is tried first, then any free port. A fault of the page never ends
    a run. Raises `MissingExtraError` if the libraries of the server are not installed.
    """

    def __init__(self, *, corrections: Path, port: int = 5000) -> None:
        if not (is_installed("fastapi") and is_installed("uvicorn")):
            raise MissingExtraError("the page of a run", "serve")
        self._options = {"corrections": str(corrections), "port": port}
        self._is_ready = False
        self._news: dict[str, Any] = {}  # not written yet
        self._has_news = threading.Condition()
        self.is_closing = False

    def __enter__(self) -> Self:
        # In a separate session, so that Ctrl-C only reaches the training, which ends this process after saving.
        self._process = subprocess.Popen(
            python_command(SERVER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._writer = threading.Thread(target=self._write, args=(_present(self._process.stdin),), daemon=True)
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._has_news:
            self.is_closing = True
            self._has_news.notify()
        if hasattr(signal, "SIGCONT"):
            self._process.send_signal(signal.SIGCONT)  # the server may be stopped
        if not self._is_ready:
            self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_SECONDS)
        self._process.kill()
        self._process.wait()
        self._writer.join()
        _present(self._process.stdout).close()

    def url(self) -> str:
        """Return the address of the page once it is ready; "" if the server has ended before."""
        try:
            answer = _present(self._process.stdout).readline()
        except ValueError:  # closed in the meantime
            answer = ""
        self._is_ready = bool(answer)
        return str(parse_json(answer)["url"]) if answer else ""

    def watching(self, callback: "TrainingCallback", folder: Path) -> "ShownOnPage":
        """Make a callback that calls `callback`, and tells the page about the run in `folder`."""
        self.tell({"folder": str(folder)})
        return ShownOnPage(callback, self)

    def wait(self, request: InterruptRequest) -> None:
        """Return when the server has ended, or a stop was requested."""
        while self._process.poll() is None and not request.signal:
            time.sleep(0.1)

    def tell(self, news: Mapping[str, Any]) -> None:
        """Report to the page; see `TrainingState`. Reports that a slow server has not read are merged into one line."""
        with self._has_news:
            self._news |= news
            self._has_news.notify()

    def _write(self, pipe: IO[str]) -> None:
        """Send messages about the training until it ends. If the server stops, the training goes on."""
        with suppress(BrokenPipeError), pipe:
            line: Mapping[str, Any] = self._options
            while line:
                pipe.write(to_json(line) + "\n")
                pipe.flush()
                with self._has_news:
                    self._has_news.wait_for(lambda: self._news or self.is_closing)
                    line, self._news = self._news, {}


class ShownOnPage:
    """A `TrainingCallback` that calls `callback` and reports to a page. `now` is a clock in seconds."""

    def __init__(
        self, callback: "TrainingCallback", page: TrainingPage, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._callback, self._page, self._now = callback, page, now
        self._sent_at, self._begun, self._first = float("-inf"), now(), 0
        self._warnings: list[str] = []

    def on_prepare(self, what: str, done: int, total: int | None) -> None:
        self._callback.on_prepare(what, done, total)
        if self._is_due():
            self._page.tell({"state": "preparing", "about": what, "done": done, "total": total})

    def on_train_begin(self, step: int, steps: int) -> None:
        self._callback.on_train_begin(step, steps)
        self._begun, self._first = self._now(), step
        self._page.tell({"state": "training", "about": "", "step": step, "steps": steps, "kept": True})

    def on_update(self, update: "Update", steps: int) -> None:
        self._callback.on_update(update, steps)
        if self._is_due():
            left = (self._now() - self._begun) / (update.step - self._first) * (steps - update.step) if steps else None
            self._page.tell({"step": update.step, "steps": steps, "loss": float(update.loss), "seconds_left": left})

    def on_validation(self, validation: "Validation") -> None:
        self._callback.on_validation(validation)
        self._page.tell({"kept": True, "valid_loss": validation.valid_loss, "score": dict(validation.scores)})

    def on_message(self, topic: str, text: str) -> None:
        self._callback.on_message(topic, text)
        if topic == "warning":
            self._warnings.append(text)
        self._page.tell({"message": text, "warnings": list(self._warnings)})

    def _is_due(self) -> bool:
        """Return True if the page has been told nothing for a while."""
        now = self._now()
        if now - self._sent_at < EVERY:
            return False
        self._sent_at = now
        return True


def _present(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def run_training_server() -> None:
    """Serve until standard input ends. Its first line has the options, and each later line has a report."""
    end_with_parent()
    from .app import assemble
    from .models import ModelStore
    from .options import ServeConfig
    from .server import listen, run_server, url
    from .training import TrainingState

    class TrainingConfig(ServeConfig):
        drain_timeout = 2.0

    options = parse_json(sys.stdin.readline())
    # No page of another origin may read this page, because it shows the pairs of the run.
    config = TrainingConfig(suggestions=options["corrections"], cors_origins=(), workers=1)
    Path(config.suggestions).parent.mkdir(parents=True, exist_ok=True)
    models = ModelStore([], config)
    training = TrainingState(models, Path(config.suggestions))
    try:
        listener = listen(config.host, options["port"])
    except ConfigError:
        listener = listen(config.host, 0)
    app = assemble(config, models, training)

    def begin() -> None:
        logging.getLogger("allyouneed.apps.serve").setLevel(logging.WARNING)  # no log line for each request
        print(to_json({"url": url(listener)}), flush=True)
        threading.Thread(target=_follow, args=(training,), daemon=True).start()

    run_server(app, listener, config, on_ready=begin)
    if (store := Path(config.suggestions)).is_file() and not store.stat().st_size:
        store.unlink()  # nothing was corrected


def _follow(training: "TrainingState") -> None:
    for line in sys.stdin:
        training.tell(parse_json(line))
    os.kill(os.getpid(), signal.SIGTERM)  # stops the server in its own way


if __name__ == "__main__":
    run_training_server()
