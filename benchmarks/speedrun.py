"""Time to quality: BLEU of greedy translations of Multi30K's raw test_2016 against minutes of wall clock.

    python benchmarks/speedrun.py FOLDER [--minutes 6 20 45] [--systems ours marian] [--seed 1] [--peak 2e-3]
                                  [--warmup 300] [--points 10] [--transformers PYTHON] [SECTION.KEY=VALUE …]

FOLDER has Multi30K's raw files. Every budget is a run by itself, from the text to the trained model, vocabulary and the
start of the program included, whose learning rate falls to zero at its end. "ours" is `allyouneed train` with the
recipe multi30k-en-de and the settings at the end of the command; "marian" is Hugging Face's `MarianMTModel` with the
same pairs, kind of vocabulary, sizes, batches and label smoothing, trained by AdamW in float32 with a linear warmup of
`--warmup` updates to `--peak`, which then falls to zero. Runs follow one another, each on all cores that the process
may use.

About `--points` times in a run its model is set aside, which counts; the test set is translated with all of them after
the run, which does not. The time of a model is when it was on the disk, with ours including the validation before it,
which chooses the model that is kept. Lines are printed as JSON, one a run: `curve` has minutes and BLEU of every model,
`reached` the minutes of the first model with BLEU 30, 35 and 38.

`--transformers` names a Python that has transformers and all that this package needs, for example after

    python -m venv .peers && .peers/bin/pip install transformers==5.23.0 .
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import allyouneed
from allyouneed import Bundle, Recipe, Translator, recipe_path
from allyouneed.metrics import bleu
from allyouneed.text.lines import read_lines

RECIPE, TEST = "multi30k-en-de", "test_2016_flickr.{}.gz"
MARKS = (30, 35, 38)
PEERS = Path(__file__).parent.parent / ".peers/bin/python"


def train_command(folder: Path, minutes: float, settings: Sequence[str], points: int) -> list[str]:
    """Return the command that trains ours, without its output folder."""
    steps = Recipe.read(recipe_path(RECIPE), list(settings)).train.steps
    chosen = {setting.partition("=")[0] for setting in settings}
    defaults = {"train.validate_every": -(-steps // points), "train.validate_samples": 0}
    more = [f"{name}={value}" for name, value in defaults.items() if name not in chosen]
    return ["allyouneed", "train", RECIPE, "--minutes", f"{minutes:g}", f"data.data_dir={folder}", *more, *settings]


def train_ours(command: Sequence[str], scratch: Path) -> list[tuple[float, Path]]:
    """Run the command; the minutes at which each of its models was written, and a copy of that model."""
    models: list[tuple[float, Path]] = []
    run, begin, seen = scratch / "run", time.monotonic(), 0
    training = subprocess.Popen([sys.executable, "-m", *command, "--output", str(run)], stdout=sys.stderr)
    try:
        while (running := training.poll() is None) or written(run) != seen:
            if (now := written(run)) != seen:
                seen, minutes = now, (time.monotonic() - begin) / 60
                models.append((minutes, scratch / f"model-{len(models)}"))
                Bundle.load(run).save(models[-1][1])
            if running:
                time.sleep(0.2)
    finally:
        training.terminate()
        training.wait()
    if training.returncode:
        raise subprocess.CalledProcessError(training.returncode, command)
    return models


def written(run: Path) -> int:
    """Return when the model in the folder was written, the last of its files being config.json; 0: there is none."""
    try:
        return (run / "config.json").stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def curve_of_ours(options: argparse.Namespace, minutes: float, scratch: Path) -> list[dict[str, float]]:
    """Return minutes and BLEU of the models of one of our runs."""
    settings = [f"train.seed={options.seed}", *options.settings]
    command = train_command(options.folder, minutes, settings, options.points)
    print(" ".join(command), file=sys.stderr)
    models = train_ours(command, scratch)
    sources, references = (read_lines(options.folder / TEST.format(side)) for side in ("en", "de"))
    curve = []
    for took, model in models:
        score = bleu(Translator.load(model, beam=1).translate(sources), references)
        curve.append({"minutes": round(took, 2), "bleu": round(score.value, 2)})
    return curve


def curve_of_marian(options: argparse.Namespace, minutes: float, scratch: Path) -> list[dict[str, float]]:
    """Return the same for a Marian model, trained with the Python of `--transformers`."""
    request = {name: getattr(options, name) for name in ("settings", "peak", "warmup", "seed", "points")}
    request |= {
        "begin": time.monotonic(), "minutes": minutes, "folder": str(options.folder), "scratch": str(scratch),
        "recipe": RECIPE, "test": TEST,
    }  # fmt: skip
    program, source = Path(__file__).with_name("speedrun_marian.py"), Path(allyouneed.__file__).parents[1]
    done = subprocess.run(
        [options.transformers, str(program), json.dumps(request)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    curve: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return curve


def reached(curve: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    """Return the minutes of the first model that has each of `MARKS`; None if no model has."""
    return {str(mark): next((point["minutes"] for point in curve if point["bleu"] >= mark), None) for mark in MARKS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("settings", nargs="*", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--minutes", nargs="+", type=float, default=[6.0, 20.0, 45.0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, default=10, help="models of a run that are scored")
    parser.add_argument("--peak", type=float, default=2e-3, help="peak learning rate of the Marian model")
    parser.add_argument("--warmup", type=int, default=300, help="updates until this peak")
    default = str(PEERS) if PEERS.exists() else sys.executable
    parser.add_argument("--transformers", default=default, help="the Python that has transformers")
    options = parser.parse_intermixed_args()
    for minutes in options.minutes:
        for system in options.systems:
            with tempfile.TemporaryDirectory() as scratch:
                curve = SYSTEMS[system](options, minutes, Path(scratch))
            row = {"system": system, "minutes": minutes, "seed": options.seed, "settings": options.settings}
            if system == "marian":
                row |= {"peak": options.peak, "warmup": options.warmup}
            row |= {"bleu": curve[-1]["bleu"], "reached": reached(curve), "curve": curve}
            print(json.dumps(row | {"cores": cores(), "date": time.strftime("%Y-%m-%d")}), flush=True)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


SYSTEMS = {"ours": curve_of_ours, "marian": curve_of_marian}

if __name__ == "__main__":
    main()
