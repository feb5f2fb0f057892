"""The page of a training run: its progress, its curves, its worst outputs, and what to do next."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from ...bundle import model_files
from ...errors import AllYouNeedError
from ...machine.interpreter import is_installed
from ..convert.exports import export_bundle
from ..reports.record import Lines, RunRecord
from ..reports.report import draw_losses, draw_scores, worst_outputs
from .models import ModelSource, ModelStore
from .refusals import Refusal
from .server_state import Server, ServerState

router = APIRouter(prefix="/v1/training", include_in_schema=False)


class TrainingState:
    """A run, as its process reports it and its folder shows it. One thread reports, and any thread may read.

    A report is a mapping. `folder` is the folder of the run, `kept` follows a validation or the end, and everything
    else is shown on the page. `corrections` is the file for corrections made on the page.
    """

    def __init__(self, models: ModelStore, corrections: Path | None = None) -> None:
        self._models, self._corrections = models, corrections
        self._folder = Path()
        self._news: dict[str, Any] = {}
        self._record: RunRecord | None = None
        self._losses: Lines = []  # since the losses in the folder
        self._kept = 0  # how many models were taken over

    def tell(self, news: Mapping[str, Any]) -> None:
        """Take over a report. If the run has kept a new model, serve it from now on."""
        self._folder = Path(news.get("folder", self._folder))
        self._news |= {name: value for name, value in news.items() if name not in ("folder", "kept")}
        if news.get("loss") is not None:
            self._losses.append({"step": news["step"], "loss": news["loss"]})
        if news.keys() & {"folder", "kept"}:
            self._read()

    def folder(self) -> Path:
        """Return the folder of the run. Refuses a run that has no model yet."""
        if not self._kept:
            raise Refusal(409, "the run has no model yet; the first one comes with its first validation")
        return self._folder

    def describe(self) -> dict[str, Any]:
        """Return everything that the page shows."""
        run = self._record
        losses, scores = "", ""
        if run:
            last = run.last_step()
            live = [line for line in self._losses if line["step"] > last]
            run = replace(run, updates=[*(run.updates or run.checkpoints()), *live])
            losses, scores = draw_losses(run), draw_scores(run)
        return {
            **self._news,
            "kept": self._kept,
            "exports_page": is_installed("py_mini_racer"),
            "losses": losses,
            "scores": scores,
            "worst": worst_outputs(run.outputs) if run else [],
            "commands": self._commands(),
        }

    def _commands(self) -> dict[str, str]:
        """Return the commands to suggest after a run has ended.

        If there are corrections, one of the commands learns them.
        """
        commands = dict(self._news.get("commands", {}))
        if self._corrections and self._corrections.is_file() and self._corrections.stat().st_size:
            commands |= {"Learn the corrections": self._news["learn_command"]} if "learn_command" in self._news else {}
        return commands

    def _read(self) -> None:
        """Read the folder of the run, and serve its model if the model is new."""
        try:
            self._record = RunRecord.read(self._folder)
            self._losses = [line for line in self._losses if line["step"] > self._record.last_step()]
            if model_files(self._folder) and self._models.put(ModelSource.parse(self._folder)):
                self._kept += 1
        except AllYouNeedError:  # nothing is there yet, or files are being written: keep what was read before
            pass


def training_state(server: ServerState) -> TrainingState:
    """Return the training run that the server shows."""
    assert server.training is not None
    return server.training


@router.get("")
def show_training(server: Server) -> dict[str, Any]:
    """Describe the run."""
    return training_state(server).describe()


@router.get("/page")
async def export_page(server: Server) -> Response:
    """Export the model as one web page."""
    folder = training_state(server).folder()
    page = await asyncio.to_thread(_export, folder)
    name = f"{folder.name}.html".encode("ascii", "replace").decode().replace('"', "")
    return Response(page, media_type="text/html", headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _export(folder: Path) -> bytes:
    with tempfile.TemporaryDirectory() as temporary:
        page = Path(temporary, "page")
        export_bundle(folder, page, to="html", sentences=5)
        return (page / "index.html").read_bytes()
