"""A film of a run: what its model makes of one text, from the first update to the last, in `film.jsonl`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch

from ..bundle import Bundle
from ..files import to_json_lines, write_whole
from ..train.loop import Update
from .log import read_jsonl_lines

FILM_FILE = "film.jsonl"


class FrameMaker(Protocol):
    """A function that looks at the model between two updates and returns what there is to show, as plain data."""

    def __call__(self, bundle: Bundle, /) -> Mapping[str, Any]: ...


class Film:
    """The frames of a run in `path`, a line each: `step`, `loss` and what `make_frame` returns.

    `loss` is the mean training loss since the frame before, or since a resumed run went on, in nats per token; null
    where there was no update.
    """

    def __init__(self, path: Path, make_frame: FrameMaker) -> None:
        self._path, self._make_frame = path, make_frame
        self._loss, self._count = torch.tensor(0.0), 0

    def count(self, update: Update) -> None:
        """Count the loss of an update; one that is not finite counts as 0."""
        self._loss = self._loss.to(update.loss.device) + update.loss.detach().nan_to_num(0.0, 0.0, 0.0)
        self._count += 1

    def add(self, bundle: Bundle, *, step: int) -> None:
        """Add the frame after update `step`, in place of those that an earlier course of the run had from there on."""
        loss = round(float(self._loss) / self._count, 5) if self._count else None
        self._loss, self._count = torch.tensor(0.0), 0
        before = [line for line in read_jsonl_lines(self._path) if line["step"] < step]
        write_whole(self._path, to_json_lines([*before, {"step": step, "loss": loss, **self._make_frame(bundle)}]))


def is_filmed(step: int) -> bool:
    """Whether a frame follows update `step`: 0, 5, 10, 16, 23, 31, …, the gaps growing by a seventh of what is done."""
    frame = 0
    while frame < step:
        frame += 5 + frame // 7
    return frame == step
