"""What a person sees while a command works. It goes to standard error: standard output is for results."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from ..train import Pause, Update

console = Console(stderr=True, highlight=False)


class TrainingScreen:
    """A `Watch`: a bar with rate and time left, and a row for each pause. Use it in a `with`."""

    def __init__(self, *, steps: int) -> None:
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("updates · {task.fields[rate]} · loss {task.fields[loss]} ·"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=steps, rate="…", loss="…")
        self._tokens = 0
        self._header_shown = False

    def __enter__(self) -> "TrainingScreen":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tell(self, topic: str, text: str) -> None:
        console.print(f"{topic:<8}{text}")

    def updated(self, update: "Update") -> None:
        self._tokens += update.tokens
        # Reading the loss makes a GPU wait, so the bar moves on every tenth update only.
        if update.step % 10 == 0:
            seconds = self._bar.tasks[0].elapsed or math.inf
            rate = f"{self._tokens / seconds:,.0f} tokens/s"
            self._bar.update(self._task, completed=update.step, loss=f"{update.loss.item():.3f}", rate=rate)

    def paused(self, pause: "Pause") -> None:
        if not self._header_shown:
            names = "".join(f"{name:>13}" for name in pause.scores)
            console.print(f"\n{'update':>8}{'loss':>9}{'valid loss':>12}{'perplexity':>12}{names}{'seconds':>9}")
            self._header_shown = True
        valid = " " * 24
        if pause.valid_loss is not None:
            valid = f"{pause.valid_loss:>12.4f}{math.exp(min(pause.valid_loss, 700)):>12.3f}"
        scores = "".join(f"{value:>13.2f}" for value in pause.scores.values())
        console.print(f"{pause.step:>8,}{pause.loss:>9.4f}{valid}{scores}{pause.seconds:>9.1f}")


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over `total` sentences with rate and time left; yields what moves it on."""
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} ·"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(what, total=total, rate="…")

    def done(count: int) -> None:
        bar.advance(task, count)
        now = bar.tasks[0]
        bar.update(task, rate=f"{now.completed / (now.elapsed or math.inf):,.0f} sentences/s")

    with bar:
        yield done
