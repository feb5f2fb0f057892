"""Updates per second of one worker and of several, in alternation.

    python benchmarks/workers.py [--workers 2] [--rounds 3] [--captions FOLDER]

Runs of `dates`, and of `multi30k-en-de` where its folder is named, each for a number of updates without validation.
Prints the median over the rounds of the updates per second, their ratio, and the processor time of an update, all
processes together.
"""

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from allyouneed import Recipe, fit, recipe_path
from allyouneed.device import available_cores, configure_process
from allyouneed.run import SilentCallback
from allyouneed.train import Update

WARM_UP = 10  # updates that are not counted


class Clock(SilentCallback):
    """Wall clock after each update, in seconds."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_update(self, update: Update, steps: int) -> None:
        self.times.append(time.perf_counter())

    def updates_per_second(self) -> float:
        """After the first updates, which also allocate memory."""
        return (len(self.times) - 1 - WARM_UP) / (self.times[-1] - self.times[WARM_UP])


def measure(name: str, overrides: list[str], cache: Path, *, updates: int, workers: int) -> tuple[float, float]:
    """Updates per second, and processor seconds of an update with its share of starting the workers."""
    settings = [
        f"train.steps={updates}", f"train.validate_every={updates}", "train.validate_samples=0", "train.cooldown=0",
        "train.patience=0", "train.tensorboard=false", f"data.cache_dir={cache}", f"train.workers={workers}",
        f"train.threads={workers}", *overrides,
    ]  # fmt: skip
    recipe = Recipe.read(recipe_path(name), settings)
    recipe = replace(recipe, data=replace(recipe.data, valid=()))
    clock, before = Clock(), os.times()
    with tempfile.TemporaryDirectory() as folder:
        fit(recipe, Path(folder, "run"), callback=clock)
    after = os.times()
    return clock.updates_per_second(), (sum(after[:4]) - sum(before[:4])) / updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--captions", type=Path, help="the folder of Multi30K's raw files")
    options = parser.parse_args()
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    configure_process(1)
    runs: dict[str, tuple[int, list[str]]] = {"dates": (300, [])}
    if options.captions:
        runs["multi30k-en-de"] = (50, [f"data.data_dir={options.captions}"])
    print(f"torch {torch.__version__}, {available_cores()} cores, {options.rounds} rounds\n")
    print(f"{'recipe':<16}{'workers':>8}{'updates/s':>11}{'ratio':>7}{'processor ms':>14}")
    for name, (updates, overrides) in runs.items():
        with tempfile.TemporaryDirectory() as cache:
            measured = [
                [measure(name, overrides, Path(cache), updates=updates, workers=n) for n in (1, options.workers)]
                for _ in range(options.rounds)
            ]
        for column, workers in enumerate((1, options.workers)):
            speed = statistics.median(row[column][0] for row in measured)
            ratio = statistics.median(row[column][0] / row[0][0] for row in measured)
            cost = statistics.median(row[column][1] for row in measured)
            print(f"{name:<16}{workers:>8}{speed:>11.2f}{ratio:>7.2f}{1000 * cost:>14.1f}", flush=True)


if __name__ == "__main__":
    main()
