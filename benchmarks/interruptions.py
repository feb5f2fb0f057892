"""Kill trainings, and fill their disk: each must be resumed to the weights of a run that nothing interrupted.

    python benchmarks/interruptions.py --kills 20 --disks 10

A kill takes the main process at a random moment, from its start on; its workers must end by themselves. A full disk is
a limit to the size of any file, where the system refuses to write on. Prints a row for each number of workers.
"""

import argparse
import hashlib
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from attacks import family, memory

LIMITS = (200, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 60_000, 80_000)  # bytes of a file
LONGEST = 8.0  # seconds until a kill
SETTINGS = (
    "data.held_out=0.1", "model.d_model=8",
    "model.d_ff=8", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1", "train.threads=1",
    "train.steps=400", "train.validate_every=40", "train.tensorboard=false",
)  # fmt: skip


def start(folder: Path, workers: int, *options: str, limit: int = 0) -> subprocess.Popen[str]:
    """Start or resume a training, whose files may have at most `limit` bytes."""

    def limit_files() -> None:
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    words = [
        "-m",
        "allyouneed",
        "train",
        "pairs.tsv",
        "--output",
        "run",
        *options,
        f"train.workers={workers}",
        *SETTINGS,
    ]
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit_files,
    )


def finish(folder: Path, workers: int, *options: str) -> str:
    """Train to the end; return what the weights are."""
    process = start(folder, workers, *options)
    _, errors = process.communicate()
    if process.returncode:
        raise SystemExit(f"the run ended with exit code {process.returncode}: {errors}")
    return hashlib.sha256((folder / "run/weights.safetensors").read_bytes()).hexdigest()


def names(folder: Path) -> set[str]:
    """List the files of a run."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def resume_options(folder: Path) -> tuple[str, ...]:
    """Return what a command needs to go on, if there is anything to go on with."""
    return ("--resume",) if (folder / "run").is_dir() and any((folder / "run").iterdir()) else ()


def kill(folder: Path, workers: int, rng: random.Random) -> int:
    """Kill a training at a random moment; return how many processes it left behind."""
    process = start(folder, workers, *resume_options(folder))
    end = time.monotonic() + rng.uniform(0, LONGEST)
    others: list[int] = []
    while time.monotonic() < end and process.poll() is None:
        others = family(process.pid)[1:]
        time.sleep(0.02)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while any(memory([pid]) for pid in others) and time.monotonic() < deadline:
        time.sleep(0.1)
    return sum(memory([pid]) > 0 for pid in others)


def row(what: str, workers: int, count: int, interrupt: Callable[[Path, int], str]) -> None:
    """Interrupt a training some times, resume it to its end, and print what came of it."""
    with TemporaryDirectory() as whole, TemporaryDirectory() as broken:
        for folder in (whole, broken):
            Path(folder, "pairs.tsv").write_text("".join(f"{n}\t{str(n)[::-1]}\n" for n in range(10_000, 10_400)))
        expected = finish(Path(whole), workers)
        problems = [problem for number in range(count) if (problem := interrupt(Path(broken), number))]
        same = finish(Path(broken), workers, *resume_options(Path(broken))) == expected
        litter = names(Path(broken)) - names(Path(whole))
    print(
        f"{count} {what}, {workers} workers: {'the same' if same else 'OTHER'} weights, "
        f"{len(litter)} files more, {len(problems)} problems {sorted(litter)[:5]} {problems[:3]}",
        flush=True,
    )


def main() -> None:
    """Print a row for each kind and number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--disks", type=int, default=10)
    options = parser.parse_args()
    rng = random.Random(1)
    os.environ.setdefault("PYTHONWARNINGS", "ignore")

    for workers in (1, 2):

        def interrupt(folder: Path, number: int, workers: int = workers) -> str:
            left = kill(folder, workers, rng)
            return f"{left} processes left" if left else ""

        row("kills", workers, options.kills, interrupt)

    def fill(folder: Path, number: int) -> str:
        process = start(folder, 1, *resume_options(folder), limit=LIMITS[number % len(LIMITS)])
        _, errors = process.communicate()
        lines = [line for line in errors.splitlines() if line.startswith(("allyouneed:", "Traceback"))]
        is_right = process.returncode in (0, 2) and len(lines) <= 1 and "Traceback" not in errors
        return "" if is_right else f"exit code {process.returncode}: {errors[-300:]}"

    row("full disks", 1, options.disks, fill)


if __name__ == "__main__":
    main()
