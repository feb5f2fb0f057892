"""The files in which a run logs its progress.

metrics.jsonl     a line for each validation
film.jsonl        with a film, a line for each of its frames (film.py)
plans.jsonl       with a time budget, a line each time that the number of updates is planned
updates.jsonl     lines between the validations: loss, gradient norm, learning rate
environment.jsonl a line for each start of the run: command, versions, machine
samples.jsonl     a line for each validation: translations of a few validation pairs
validation.jsonl  translations of all evaluated pairs by the model in the folder, a pair a line
log.txt           every message with its time
tensorboard/      the same numbers for TensorBoard, if it is installed
report.html       all of this on one page
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..files import append, read_json_lines, to_json, to_json_lines, write_whole
from ..interpreter import is_installed
from .callback import Sample, Validation
from .update_plan import UpdatePlan

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter

PLANS = "plans.jsonl"
SAMPLES = 5  # validation pairs whose translations are kept at each validation


class RunLog:
    """The files of one run. Use it in a `with`."""

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
        """Remove what was logged after update `after`, and the average at the end."""
        names = ["metrics.jsonl", "samples.jsonl", "updates.jsonl"] + [PLANS] * (self.folder / PLANS).exists()
        for path in (self.folder / name for name in names):
            lines = [line for line in read_jsonl_lines(path) if line["step"] <= after and line.get("averaged", 1) == 1]
            write_whole(path, to_json_lines(lines))
        if self._uses_board:
            from torch.utils.tensorboard.writer import SummaryWriter

            self._board = SummaryWriter(self.folder / "tensorboard", purge_step=after + 1)

    def message(self, topic: str, text: str) -> None:
        """Log a line with its time."""
        append(self.folder / "log.txt", f"{datetime.now():%Y-%m-%d %H:%M:%S}  {topic:<8} {text}\n")

    def plan(self, plan: UpdatePlan) -> None:
        """Log how many updates a time budget allows."""
        append(self.folder / PLANS, to_json(plan._asdict()) + "\n")

    def environment(self, *, step: int, facts: Mapping[str, str]) -> None:
        """Log that the run starts, or is resumed after update `step`, and where."""
        line = {"step": step, "time": f"{datetime.now():%Y-%m-%d %H:%M:%S}", **facts}
        append(self.folder / "environment.jsonl", to_json(line) + "\n")

    def updates(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Log the course of the updates since the last validation."""
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
    """A validation as a line of metrics.jsonl."""
    perplexity = None if validation.valid_loss is None else exp(min(validation.valid_loss, 700))
    line = asdict(validation) | {"perplexity": perplexity}
    del line["samples"]
    return line


def pick_samples(samples: Sequence[Sample]) -> Sequence[Sample]:
    """A few of them, evenly spaced; always the same ones."""
    apart = max(1, len(samples) // SAMPLES)
    return samples[::apart][:SAMPLES]


def read_plans(folder: Path) -> list[UpdatePlan]:
    """The plans of a run with a time budget, in the order in which they were made."""
    path = folder / PLANS
    try:
        return [UpdatePlan(**line) for line in read_jsonl_lines(path)]
    except TypeError as error:
        raise DataError(f"{path} is damaged: {error}; remove it to continue without it") from error


def read_jsonl_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a .jsonl file, without a last one that is incomplete because the process was killed."""
    try:
        lines = read_json_lines(path) if path.exists() else []
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}; remove it to continue without it") from error
    if not all(isinstance(line, dict) and ("step" in line or "score" in line) for line in lines):
        raise DataError(
            f"{path} is damaged: a line is not an object that a run writes; remove it to continue without it"
        )
    return lines
