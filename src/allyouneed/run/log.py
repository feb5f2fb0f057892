"""The files in which a run logs its progress, and the measurements between two validations that it logs.

metrics.jsonl     a line for each validation
film.jsonl        if the run has a film, a line for each of its frames
plans.jsonl       with a time budget, a line for each plan of the number of updates
updates.jsonl     lines between the validations: loss, gradient norm, learning rate
environment.jsonl a line for each start of the run: command, versions, machine
samples.jsonl     a line for each validation: translations of a few validation pairs
validation.jsonl  translations of all evaluated pairs by the model in the folder, one pair per line
log.txt           every message with its time
tensorboard/      the same numbers for TensorBoard, if it is installed
report.html       all of this on one page
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from ..bundle import Bundle
from ..errors import DataError, refused
from ..machine.files import append, read_json_lines, to_json, to_json_lines, write_whole
from ..machine.interpreter import is_installed
from ..train.loop import Update
from .callback import Sample, Validation
from .state import TrainState, UpdatePlan

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter

PLANS = "plans.jsonl"
SAMPLES = 5  # translations to keep at each validation


class RunLog:
    """The log files of one run; use it in a `with` statement."""

    def __init__(self, folder: Path, *, tensorboard: bool) -> None:
        self.folder = folder
        self._board: SummaryWriter | None = None
        self._uses_board = tensorboard and is_installed("tensorboard")

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *_: object) -> None:
        if self._board is not None:
            self._board.close()

    def begin(self, *, after: int) -> None:
        """Remove everything that was logged after update `after`, and the log of the average at the end."""
        names = ["metrics.jsonl", "samples.jsonl", "updates.jsonl"] + [PLANS] * (self.folder / PLANS).exists()
        for path in (self.folder / name for name in names):
            lines = [line for line in read_jsonl_lines(path) if line["step"] <= after and line.get("averaged", 1) == 1]
            write_whole(path, to_json_lines(lines))
        if self._uses_board:
            from torch.utils.tensorboard.writer import SummaryWriter

            self._board = SummaryWriter(self.folder / "tensorboard", purge_step=after + 1)

    def message(self, topic: str, text: str) -> None:
        """Log a message with its time."""
        append(self.folder / "log.txt", f"{datetime.now():%Y-%m-%d %H:%M:%S}  {topic:<8} {text}\n")

    def plan(self, plan: UpdatePlan) -> None:
        """Log how many updates a time budget allows."""
        append(self.folder / PLANS, to_json(plan._asdict()) + "\n")

    def environment(self, *, step: int, facts: Mapping[str, str]) -> None:
        """Log that the run starts, or is resumed after update `step`, and on which machine."""
        line = {"step": step, "time": f"{datetime.now():%Y-%m-%d %H:%M:%S}", **facts}
        append(self.folder / "environment.jsonl", to_json(line) + "\n")

    def updates(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Log lines about the updates since the last validation."""
        append(self.folder / "updates.jsonl", to_json_lines(lines))

    def write_outputs(self, samples: Sequence[Sample]) -> None:
        """Write the validation translations of the model that is now in the folder."""
        write_whole(self.folder / "validation.jsonl", to_json_lines(map(asdict, samples)))

    def validation(self, validation: Validation) -> None:
        """Log a validation."""
        line = metrics_line(validation)
        append(self.folder / "metrics.jsonl", to_json(line) + "\n")
        if validation.samples:
            samples = {
                "step": validation.step,
                "averaged": validation.averaged,
                "samples": [asdict(sample) for sample in pick_samples(validation.samples)],
            }
            append(self.folder / "samples.jsonl", to_json(samples) + "\n")
        if self._board is not None:
            for name, value in (line | line["scores"]).items():
                if isinstance(value, int | float) and name not in ("step", "averaged"):
                    self._board.add_scalar(name, value, validation.step)
            self._board.flush()


def metrics_line(validation: Validation) -> dict[str, Any]:
    """Make a line of metrics.jsonl from a validation."""
    perplexity = None if validation.valid_loss is None else choices(validation.valid_loss)
    line = asdict(validation) | {"perplexity": perplexity}
    del line["samples"]
    return line


def choices(loss: float) -> float:
    """Return the perplexity e^loss. A model with this loss is as unsure as if it chose among that many equal tokens."""
    return exp(min(loss, 700))


def describe_guessing(tokens: int) -> str:
    """Explain a loss, and say how large the loss of a random guess is."""
    guess = f"a guess is among {tokens:,} tokens, a loss of {log(tokens):.2f}"
    return f"e^loss says among how many tokens the model chooses; {guess}"


def pick_samples(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Pick a few samples, evenly spaced and always the same."""
    apart = max(1, len(samples) // SAMPLES)
    return samples[::apart][:SAMPLES]


def read_plans(folder: Path) -> list[UpdatePlan]:
    """Read the plans of a run with a time budget, in the order in which they were made."""
    path = folder / PLANS
    with refused(DataError, f"{path} is damaged", TypeError, remedy="remove it to continue without it"):
        return [UpdatePlan(**line) for line in read_jsonl_lines(path)]


def read_jsonl_lines(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a .jsonl file, without an incomplete last line that a killed process left."""
    with refused(DataError, f"{path} is damaged", OSError, ValueError, remedy="remove it to continue without it"):
        lines = read_json_lines(path) if path.exists() else []
        if not all(isinstance(line, dict) and ("step" in line or "score" in line) for line in lines):
            raise ValueError("a line is not an object that a run writes")
    return lines


FILM_FILE = "film.jsonl"


class FrameMaker(Protocol):
    """A function that looks at the model between two updates and returns what to show, as plain data."""

    def __call__(self, bundle: Bundle, /) -> Mapping[str, Any]: ...


class Film:
    """The frames of a run in `path`, one per line: `step`, `loss` and the result of `make_frame`.

    `loss` is the mean training loss since the previous frame, or since a resumed run continued, in nats per token; null
    if there was no update.
    """

    def __init__(self, path: Path, make_frame: FrameMaker) -> None:
        self._path = path
        self._make_frame = make_frame
        self._loss = torch.tensor(0.0)
        self._count = 0

    def count(self, update: Update) -> None:
        """Count the loss of an update. A loss that is not finite counts as 0."""
        self._loss = self._loss.to(update.loss.device) + update.loss.detach().nan_to_num(0.0, 0.0, 0.0)
        self._count += 1

    def add(self, bundle: Bundle, *, step: int) -> None:
        """Add the frame after update `step`. Later frames, from before a rollback or resume, are dropped."""
        loss = round(float(self._loss) / self._count, 5) if self._count else None
        self._loss = torch.tensor(0.0)
        self._count = 0
        before = [line for line in read_jsonl_lines(self._path) if line["step"] < step]
        write_whole(self._path, to_json_lines([*before, {"step": step, "loss": loss, **self._make_frame(bundle)}]))


def is_filmed(step: int) -> bool:
    """Return True if a frame follows update `step`: 0, 5, 10, 16, 23, 31, …, with growing gaps."""
    frame = 0
    while frame < step:
        frame += 5 + frame // 7
    return frame == step


COURSE_POINTS = 20  # points of the curves between two validations


class Speed:
    """The speed in target tokens per second, with padding, since the last `restart`."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start counting from zero."""
        self._tokens = 0
        self._begun = time.monotonic()

    def count(self, tokens: int) -> None:
        """Count the tokens of an update."""
        self._tokens += tokens

    def tokens_per_second(self) -> float | None:
        """Return the speed so far, or None before the first update."""
        return self._tokens / (time.monotonic() - self._begun) if self._tokens else None


def mean_gradient_norm(state: TrainState) -> float | None:
    """Average the gradient norm over the updates since the last validation; None if there were none."""
    return torch.stack(state.gradient_norms).mean().item() if state.gradient_norms else None


def course_since_validation(state: TrainState, learning_rate_at: Callable[[int], float]) -> list[dict[str, Any]]:
    """Average loss and gradient norm over at most `COURSE_POINTS` groups of updates since the last validation.

    `step` is the last update of a group. Skipped updates are left out without being located, so the steps of earlier
    groups may be too high by the number of skipped updates.
    """
    count = len(state.losses)
    first = state.step - count
    parts = min(COURSE_POINTS, count)
    lines = []
    for part in range(parts):
        begin = part * count // parts
        end = (part + 1) * count // parts
        lines.append(
            {
                "step": first + end,
                "loss": torch.stack(state.losses[begin:end]).mean().item(),
                "gradient_norm": torch.stack(state.gradient_norms[begin:end]).mean().item(),
                "learning_rate": state.learning_rate_factor * learning_rate_at(first + end),
            }
        )
    return lines
