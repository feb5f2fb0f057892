"""Runs small enough for tests, and processes that are killed in the middle of one."""

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

from allyouneed import Recipe, fit
from allyouneed.config import CleanConfig, DataConfig
from allyouneed.data.prepare import prepare
from allyouneed.run import Validation
from allyouneed.train import Update

TINY = Recipe.from_tables(
    {
        "data": {
            "train": "dates:train", "valid": "dates:valid", "max_train_samples": 200, "max_valid_samples": 20,
            "vocabulary": "characters",
        },
        "model": {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_length": 32},
        "train": {
            "steps": 12, "batch_tokens": 200, "warmup": 4, "validate_every": 4, "average_checkpoints": 2, "threads": 1,
            "tensorboard": False,
        },
        "decode": {"retry_repetition": False},  # a model of 12 updates repeats itself in every translation
    }
)  # fmt: skip


class Notebook:
    """A `Watch` that notes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.validations: list[Validation] = []
        self.prepared: list[tuple[str, int, int | None]] = []

    def on_message(self, topic: str, text: str) -> None:
        self.lines.append(f"{topic}: {text}")

    def on_prepare(self, what: str, done: int, total: int | None) -> None:
        self.prepared.append((what, done, total))

    def on_train_begin(self, step: int, steps: int) -> None:
        pass

    def on_update(self, update: Update, steps: int) -> None:
        pass

    def on_validation(self, validation: Validation) -> None:
        self.validations.append(validation)


class StopAt(Notebook):
    """A `Watch` that breaks the run off, unsaved, right after some update."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._step = step

    def on_update(self, update: Update, steps: int) -> None:
        if update.step == self._step:
            raise KeyboardInterrupt


def read_weights(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


def eventful(**train: object) -> Recipe:
    """Give TINY everything that a checkpoint has to remember: dropout, accumulation, patience, a mean of models."""
    settings = {"accumulate_steps": 2, "patience": 50, "validate_every": 3, **train}
    return replace(TINY, model=replace(TINY.model, dropout=0.2), train=replace(TINY.train, **settings))  # type: ignore[arg-type]


def run_until_write(output: Path, recipe: Recipe, number: int, half: bool) -> None:
    """Go on with a run and be killed at its write `number`: with half of the file written, or all but its name."""
    replaced, writes = Path.replace, 0

    def replace_or_die(self: Path, target: Path) -> Path:
        nonlocal writes
        writes += 1
        if writes == number:
            if half and self.is_file():
                os.truncate(self, self.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        return replaced(self, target)

    Path.replace = replace_or_die  # type: ignore[method-assign, assignment]
    _quietly(output, recipe)


def run_slowly(output: Path, recipe: Recipe) -> None:
    """Go on with a run whose every write takes long, so that a kill at random will often hit one."""
    flush = os.fsync

    def slow(file: int) -> None:
        time.sleep(0.01 + 0.02 * random.random())
        flush(file)

    os.fsync = slow  # type: ignore[assignment]
    _quietly(output, recipe)


def _quietly(output: Path, recipe: Recipe) -> None:
    import torch

    torch.set_num_threads(1)
    fit(recipe, output, resume=True)


def prepare_in_store(folder: Path, name: str) -> None:
    """Prepare `pairs.tsv` of a folder in the store that stands there."""
    data = DataConfig(train="pairs.tsv", data_dir=str(folder), cache_dir=str(folder / "store"), vocab_size=300)
    prepare(data, CleanConfig(), folder / name, max_length=64)
