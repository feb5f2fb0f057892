"""Progress bars with the time left, and a row for each validation. Rich, which draws them, takes 0.1 s to import."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from .screen import console

if TYPE_CHECKING:
    from torch import Tensor

    from ...run import Validation
    from ...train import Update

# Topics of messages that give reasons. The other messages describe the pairs, the model and the duration.
WHY_TOPICS = {
    "vocabulary", "tokens", "statistics", "speed", "auto", "exports", "program", "workers", "memory",
    "budget",
}  # fmt: skip


class TimeLeft(ProgressColumn):
    """The time left, from the mean time of all steps since the task began; unknown before the first step."""

    def render(self, task: Task) -> Text:
        done = task.completed - task.fields.get("begun", 0)
        if not task.total or task.elapsed is None or done <= 0:
            return Text()
        seconds = int(task.elapsed / done * max(0, task.total - task.completed))
        return Text(f"· {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left")


class ProgressBar:
    """A `TrainingCallback` that draws a bar with speed and time left, and prints a row for each validation.

    With `samples`, it also prints the translations of two validation pairs. If a file `details` is given, messages with
    reasons for settings are only in that file and not printed. When passed to `fit`, the bar runs as long as `fit`;
    elsewhere use it in a `with` statement.
    """

    def __init__(self, *, samples: bool = True, details: Path | None = None) -> None:
        self._samples, self._details = samples, details
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[about]}"),
            TimeLeft(),
            console=console.rich,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("reading", total=None, about="pairs")
        self._tokens, self._seconds, self._since = 0, 0.0, 0.0  # of updates only, without validation
        self._loss = math.nan
        self._latest: Tensor | None = None
        self._header_shown = False

    def __enter__(self) -> "ProgressBar":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def on_message(self, topic: str, text: str) -> None:
        if self._details is None or topic not in WHY_TOPICS:
            console.print(f"{topic:<7} {text}")

    def on_prepare(self, what: str, done: int, total: int | None) -> None:
        if what != self._bar.tasks[0].description:
            self._bar.reset(self._task, description=what)  # the time left is that of this stage
        self._bar.update(self._task, completed=done, total=total)

    def on_train_begin(self, step: int, steps: int) -> None:
        self._since = time.monotonic()
        if self._details is not None and not self._header_shown:  # the first model of an ensemble
            console.print(f"{'why':<7} {self._details}")
        self._bar.reset(self._task, total=steps, completed=step, description="training", about="updates", begun=step)

    def on_update(self, update: "Update", steps: int) -> None:
        now = time.monotonic()
        self._tokens, self._seconds, self._since = self._tokens + update.tokens, self._seconds + now - self._since, now
        if update.step % 10 == 0 or self._latest is None:
            # Reading the newest loss would make a GPU idle; the loss of ten updates ago is already there.
            self._loss = (update.loss if self._latest is None else self._latest).item()
            self._latest = update.loss
        about = f"updates · {self._tokens / (self._seconds or math.inf):,.0f} tokens/s · loss {self._loss:.3f}"
        self._bar.update(self._task, total=steps or None, completed=update.step, about=about)

    def on_validation(self, validation: "Validation") -> None:
        self._row(validation)
        overflow: Literal["ellipsis", "ignore"] = "ellipsis" if console.is_terminal else "ignore"
        for sample in validation.samples[:: max(1, len(validation.samples) // 2)][:2] if self._samples else ():
            text = f"{'':>9}{sample.source} → {sample.output}"
            console.print(text, style="dim", no_wrap=True, overflow=overflow, crop=console.is_terminal)
        self._since = time.monotonic()

    def _row(self, validation: "Validation") -> None:
        from ...run import telling_scores
        from ...run.log import choices  # imports PyTorch, which the caller has already imported

        if not self._header_shown:
            names = "".join(f"{name:>{_width(name)}}" for name in validation.scores)
            head = (
                f"\n{'update':>7}{'loss':>8}{'valid loss':>11}{'choosing among':>15}{'right %':>8}{names}{'seconds':>9}"
            )
            console.print(head)
            self._header_shown = True
        valid = " " * 34
        if validation.valid_loss is not None:
            valid = f"{validation.valid_loss:>11.4f}{choices(validation.valid_loss):>15,.3f}{validation.accuracy:>8.2f}"
        scores = "".join(
            f"{'–' if value is None else f'{value:.2f}':>{_width(name)}}"
            for name, value in telling_scores(validation.scores).items()
        )
        mean = f"   the mean of the last {validation.averaged}" if validation.averaged > 1 else ""
        loss = " " * 8 if validation.loss is None else f"{validation.loss:>8.4f}"
        row = f"{validation.step:>7,}{loss}{valid}{scores}{validation.seconds:>9.1f}{mean}"
        console.print(row)


def _width(name: str) -> int:
    """Return the width of the column of a score. The name of a user's metric may be long."""
    return max(7, len(name) + 1)


@contextmanager
def sentence_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar over `total` sentences (None: unknown) with speed and time left.

    Yields a function that advances it.
    """
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeLeft(),
        console=console.rich,
        transient=True,
    )
    task = bar.add_task(what, total=total, rate="…")

    def done(count: int) -> None:
        bar.advance(task, count)
        now = bar.tasks[0]
        bar.update(task, rate=f"{now.completed / (now.elapsed or math.inf):,.0f} sentences/s")

    with bar:
        yield done
