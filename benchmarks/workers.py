"""Updates a minute beside zero, one and two busy programs: by default, and with fixed numbers of processes and threads.

    python benchmarks/workers.py [--captions FOLDER] [--size small] [--seconds 12] [--auto-seconds 45] [--busy 0 1 2]

Each run trains in a process of its own for so many seconds after its first update, on the captions of Multi30K or, by
default, on sentences of random words. Fixed settings run for `--seconds`, the default for `--auto-seconds`, so that the
trials of `run/worker_count.py` are in it. The table has updates a minute, those of the default as a share of the best
fixed setting, and processor time of an update, all processes together.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from allyouneed import Recipe, fit
from allyouneed.machine.device import available_cores
from allyouneed.run import SilentCallback
from allyouneed.train import Update

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "1 process": {"workers": 1, "threads": 1},
    "2 processes": {"workers": 2, "threads": 2},
    "2 threads": {"workers": 1, "threads": 2},
}
SIZES = {
    "tiny": {"d_model": 128, "d_ff": 512, "heads": 4, "encoder_layers": 2, "decoder_layers": 2},
    "small": {"d_model": 256, "d_ff": 1024, "heads": 4, "encoder_layers": 3, "decoder_layers": 3},
}
BUSY = "while True: pass"


class Clock(SilentCallback):
    """Count the updates of some seconds after the first one, then end the run."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.updates, self.cores = seconds, 0, ""
        self.minute, self.cost, self._begun, self._used = 0.0, 0.0, 0.0, 0.0

    def on_update(self, update: Update, steps: int) -> None:
        now = time.perf_counter()
        if not self._begun:
            self._begun, self._used = now, _processor_seconds()
            return
        self.updates += 1
        if now - self._begun > self.seconds:
            self.minute = 60 * self.updates / (now - self._begun)
            self.cost = (_processor_seconds() - self._used) / self.updates
            raise KeyboardInterrupt

    def on_message(self, topic: str, text: str) -> None:
        if topic == "workers":
            self.cores = text


def _processor_seconds() -> float:
    """Return the processor time of this process, the workers that it has started, and those that have ended."""
    ended, ticks = os.times(), 0
    for process in [os.getpid(), *map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())]:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + ended.children_user + ended.children_system


def train(pairs: str, cache: str, settings: dict[str, Any], seconds: float, size: str) -> None:
    """Train in this process, and print what was counted as JSON."""
    clock = Clock(seconds)
    tables = {
        "data": {"train": pairs.split(), "held_out": 0, "vocab_size": 4_000, "cache_dir": cache},
        "model": SIZES[size],
        "train": {
            "steps": 1_000_000, "validate_every": 1_000_000, "validate_samples": 0, "batch_tokens": 2_048,
            "optimizer": "muon", "precision": "auto", "patience": 0, "tensorboard": False, "warmup": 1_000,
            "average_checkpoints": 1, "learning_rate": 0.001, "schedule": "constant", **settings,
        },
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        fit(Recipe.from_tables(tables), Path(folder, "run"), callback=clock, evaluate=None)
    print(json.dumps({"minute": clock.minute, "cost": clock.cost, "cores": clock.cores}))


def measure(pairs: str, cache: str, settings: dict[str, Any], seconds: float, size: str) -> dict[str, Any]:
    """Train in a process of its own."""
    words = [sys.executable, __file__, "--one", json.dumps([pairs, cache, settings, seconds, size])]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def write_sentences(folder: Path) -> str:
    """Write two aligned files of random words, as long as captions."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnoprstuvz", k=rng.randint(2, 9))) for _ in range(8_000)]
    for side in ("en", "de"):
        lines = (" ".join(rng.choices(words, k=rng.randint(8, 18))) for _ in range(20_000))
        Path(folder, f"train.{side}").write_text("\n".join(lines) + "\n")
    return f"{folder}/train.en {folder}/train.de"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=Path, help="a folder with train.en and train.de")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--auto-seconds", type=float, default=45)
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        train(*json.loads(options.one))
        return
    print(f"{available_cores()} cores, size {options.size}\n")
    print(f"{'busy':<6}{'setting':<14}{'updates/min':>12}{'of the best':>12}{'processor ms':>14}  last line of the log")
    with tempfile.TemporaryDirectory() as folder:
        captions = options.captions
        pairs = f"{captions}/train.en {captions}/train.de" if captions else write_sentences(Path(folder))
        for count in options.busy:
            busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
            try:
                rows = {
                    name: measure(
                        pairs,
                        f"{folder}/pairs",
                        settings,
                        options.seconds if settings else options.auto_seconds,
                        options.size,
                    )
                    for name, settings in SETTINGS.items()
                }
            finally:
                for process in busy:
                    process.kill()
                    process.wait()
            best = max(row["minute"] for name, row in rows.items() if SETTINGS[name])
            for name, row in rows.items():
                share, cost = row["minute"] / best, 1000 * row["cost"]
                line = f"{count:<6}{name:<14}{row['minute']:>12.0f}{share:>12.2f}{cost:>14.0f}  {row['cores']}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
