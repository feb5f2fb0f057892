"""What a person sees while a command works. It goes to standard error: standard output is for results."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from ..train import Pause, Update

console = Console(stderr=True, highlight=False, markup=False)  # a path may hold [brackets]


class TrainingScreen:
    """A `Watch`: a bar with rate and time left, and a row for each pause. Use it in a `with`."""

    def __init__(self, *, samples: bool = True) -> None:
        self._samples = samples
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[about]} ·"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("reading", total=None, about="pairs")
        self._tokens, self._since = 0, 0.0
        self._header_shown = False

    def __enter__(self) -> "TrainingScreen":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tell(self, topic: str, text: str) -> None:
        console.print(f"{topic:<8}{text}")

    def preparing(self, what: str, done: int, total: int | None) -> None:
        if what != self._bar.tasks[0].description:
            self._bar.reset(self._task, description=what)  # the time left is that of this part alone
        self._bar.update(self._task, completed=done, total=total)

    def began(self, step: int, steps: int) -> None:
        self._since = time.monotonic()
        self._bar.reset(self._task, total=steps, completed=step, description="training", about="updates")

    def updated(self, update: "Update") -> None:
        self._tokens += update.tokens
        # Reading the loss makes a GPU wait, so the bar moves on every tenth update only.
        if update.step % 10 == 0:
            seconds = time.monotonic() - self._since
            about = f"updates · {self._tokens / seconds:,.0f} tokens/s · loss {update.loss.item():.3f}"
            self._bar.update(self._task, completed=update.step, about=about)

    def paused(self, pause: "Pause") -> None:
        self._row(pause)
        for sample in pause.samples[:: max(1, len(pause.samples) // 2)][:2] if self._samples else ():
            text = f"{'':>9}{sample.source} → {sample.output}"
            console.print(text, style="dim", markup=False, no_wrap=True, overflow="ellipsis")

    def _row(self, pause: "Pause") -> None:
        if not self._header_shown:
            names = "".join(f"{name:>7}" for name in pause.scores)
            head = f"\n{'update':>7}{'loss':>8}{'valid loss':>11}{'perplexity':>11}{'right %':>8}{names}{'seconds':>9}"
            console.print(head, soft_wrap=True)
            self._header_shown = True
        valid = " " * 30
        if pause.valid_loss is not None:
            valid = f"{pause.valid_loss:>11.4f}{math.exp(min(pause.valid_loss, 700)):>11.3f}{pause.accuracy:>8.2f}"
        scores = "".join(f"{value:>7.2f}" for value in pause.scores.values())
        mean = f"   the mean of the last {pause.averaged}" if pause.averaged > 1 else ""
        loss = " " * 8 if pause.loss is None else f"{pause.loss:>8.4f}"
        row = f"{pause.step:>7,}{loss}{valid}{scores}{pause.seconds:>9.1f}{mean}"
        console.print(row, soft_wrap=True)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over `total` sentences (None: nobody knows) with rate and time left; yields what moves it on."""
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
