"""What a run writes down about itself while it goes on.

metrics.jsonl     a line for each pause
samples.jsonl     a line for each pause: what the model made of a few validation pairs
validation.jsonl     what the model that is left makes of them, a pair a line
log.txt           what was told, and when
tensorboard/      the same numbers for TensorBoard, where that is installed
report.html       all of it on one page
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..files import append, read_json_lines, to_json, write_whole
from .callback import Sample, Validation

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter

SHOWN = 5  # validation pairs whose translation is kept at each pause


class RunLog:
    """The files of one run. Use it in a `with`."""

    def __init__(self, folder: Path, *, tensorboard: bool) -> None:
        self.folder = folder
        self._board: SummaryWriter | None = None
        self._wants_board = tensorboard and find_spec("tensorboard") is not None

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *_: object) -> None:
        if self._board is not None:
            self._board.close()

    def begin(self, *, after: int) -> None:
        """Forget what was written about updates that `after` undoes: those after that one, and the end's mean."""
        for name in ("metrics.jsonl", "samples.jsonl"):
            path = self.folder / name
            lines = [line for line in read_jsonl_lines(path) if line["step"] <= after and line.get("averaged", 1) == 1]
            write_whole(path, "".join(to_json(line) + "\n" for line in lines))
        if self._wants_board:
            from torch.utils.tensorboard.writer import SummaryWriter

            self._board = SummaryWriter(self.folder / "tensorboard", purge_step=after + 1)

    def message(self, topic: str, text: str) -> None:
        """Note a line with its time."""
        append(self.folder / "log.txt", f"{datetime.now():%Y-%m-%d %H:%M:%S}  {topic:<8} {text}\n")

    def write_outputs(self, samples: Sequence[Sample]) -> None:
        """Note what the model that now stands in the folder makes of the validation pairs."""
        lines = [to_json(asdict(sample)) + "\n" for sample in samples]
        write_whole(self.folder / "validation.jsonl", "".join(lines))

    def validation(self, pause: Validation) -> None:
        """Note a pause."""
        line = metrics_line(pause)
        append(self.folder / "metrics.jsonl", to_json(line) + "\n")
        if pause.samples:
            shown = {
                "step": pause.step,
                "averaged": pause.averaged,
                "samples": [asdict(sample) for sample in pick_samples(pause.samples)],
            }
            append(self.folder / "samples.jsonl", to_json(shown) + "\n")
        if self._board is not None:
            for name, value in (line | line["scores"]).items():
                if isinstance(value, int | float) and name not in ("step", "averaged"):
                    self._board.add_scalar(name, value, pause.step)
            self._board.flush()


def metrics_line(pause: Validation) -> dict[str, Any]:
    """A pause as a line of metrics.jsonl."""
    perplexity = None if pause.valid_loss is None else exp(min(pause.valid_loss, 700))
    line = asdict(pause) | {"perplexity": perplexity}
    del line["samples"]
    return line


def pick_samples(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Always the same few of them, from beginning to end."""
    apart = max(1, len(samples) // SHOWN)
    return samples[::apart][:SHOWN]


def read_jsonl_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a .jsonl file; one that a kill cut off at the end is left out."""
    try:
        lines = read_json_lines(path) if path.exists() else []
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}; remove it to go on without") from error
    if not all(isinstance(line, dict) and ("step" in line or "score" in line) for line in lines):
        raise DataError(f"{path} is damaged: a line is no object that a run writes; remove it to go on without")
    return lines
