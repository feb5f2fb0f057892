"""`allyouneed train --serve`: the page of the run, from the command to the end of the program."""

import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .program import mended_command, shell_command

if TYPE_CHECKING:
    from ..serve.training_page import TrainingPage


@contextmanager
def run_page(run: Path) -> Iterator["TrainingPage"]:
    """The page of a run, whose address is printed, and opened in a browser at a terminal, as soon as it is there."""
    from ..serve.training_page import TrainingPage
    from .screen import console

    def announce() -> None:
        if url := page.url():
            console.print(f"{'page':<7} {url}")
            if console.is_terminal:
                webbrowser.open(url)
        elif not page.is_closing:
            console.print("warning The page of the run has ended; the run goes on without it")

    with TrainingPage(corrections=_corrections(run)) as page:
        page.tell({"state": "preparing", "name": run.name, "folder": str(run), "resume": _resumed("--resume")})
        threading.Thread(target=announce, daemon=True).start()
        yield page


def keep_serving(page: "TrainingPage", run: Path) -> None:
    """Tell the page that its run has ended, and what can follow; return when Ctrl-C or its own end ends the server."""
    from ...config import Recipe
    from .screen import console

    train = Recipe.read(run / "recipe.toml").train
    more = ("--minutes", f"{2 * train.minutes:g}") if train.minutes else (f"train.steps={2 * train.steps}",)
    corrections = _corrections(run)
    commands = {
        "Serve it, later": shell_command("serve", run, "--suggestions", corrections),
        "Train longer": _resumed(*more, "--resume"),
        "Learn the corrections": shell_command("adapt", run, corrections, "-o", f"{run}-corrected"),
    }
    page.tell({"state": "finished", "folder": str(run), "commands": commands})
    console.print("The page goes on with the finished model until Ctrl-C; corrections go to " + str(corrections))
    with suppress(KeyboardInterrupt):
        page.wait()


def _corrections(run: Path) -> Path:
    """Beside the folder of the run, which another run may replace."""
    return run.with_name(f"{run.name}-corrections.jsonl")


def _resumed(*options: str) -> str:
    """The command that is running, with these options, and without one that starts the run anew."""
    return mended_command(options, without=("--overwrite",))
