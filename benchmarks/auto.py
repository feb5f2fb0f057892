"""What `allyouneed train PAIRS --minutes N` reaches beside settings found by hand, in the same minutes.

    python benchmarks/auto.py --corpora FOLDER [--tasks add sql …] [--minutes 2] [--seeds 1]

FOLDER holds the corpora of `auto_tasks.py`; without it, only the tasks that are made there are run. For each task and
budget one run chooses everything itself, another has the settings of `EXPERTS`, the best of a few tries each. Both
score the test pairs with greedy search: exact match, or BLEU for translations. Runs follow one another. Wall clock is
of the whole command, processor time of all its processes. `--record FILE` keeps the runs: the same call with it makes
those that are missing, and prints the whole table. There "by hand" is the best of all recorded runs of a task and a
budget with settings of their own, such as `--try` makes, and "tries" is their number. `--sides automatic` makes one of
the two.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count, product
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import torch
from auto_tasks import GENERATED, MADE_COUNTS, STORED, Pairs, made_pairs, read_pairs

from allyouneed import Translator, evaluate

# The sizes that were found by hand.
NARROW = (
    "model.d_model=64 model.d_ff=256 model.heads=4 model.encoder_layers=2 model.decoder_layers=2 "
    "train.learning_rate=0.01 train.batch_tokens=1024"
)
MEDIUM = (
    "model.d_model=128 model.d_ff=512 model.heads=4 model.encoder_layers=2 model.decoder_layers=2 "
    "train.learning_rate=0.005 train.batch_tokens=1024"
)
EXACT = "model.dropout=0 train.label_smoothing=0"
CHARACTERS = f"data.vocabulary=characters {EXACT}"
PHRASES = f"data.vocabulary=bpe data.vocab_size=1000 {EXACT} {NARROW}"
TEXT = f"data.vocab_size=4000 {MEDIUM} train.label_smoothing=0.1"
# The best settings found by hand for a task, by the minutes of the budget.
EXPERTS = {
    "add": {2: f"{CHARACTERS} {NARROW}"},
    "sql": {3: f"data.vocabulary=bpe data.vocab_size=1000 {EXACT} {MEDIUM}"},
    "g2p": {
        3: f"data.vocabulary=bpe data.vocab_size=400 {EXACT} {NARROW} train.batch_tokens=512",
        10: f"data.source_vocabulary=characters data.target_vocabulary=symbols {MEDIUM} model.dropout=0.1 "
        "train.label_smoothing=0.1",
    },
    "multi30k": {
        2: f"{TEXT} model.d_model=96 model.d_ff=384 model.dropout=0 train.learning_rate=0.01",
        10: f"{TEXT} model.encoder_layers=3 model.decoder_layers=3 model.dropout=0.05 train.learning_rate=0.007",
        30: "data.vocab_size=6000 model.d_model=256 model.d_ff=1024 model.heads=4 model.encoder_layers=3 "
        "model.decoder_layers=3 model.dropout=0.2 train.label_smoothing=0.1 train.learning_rate=0.003 "
        "train.batch_tokens=2048",
    },
    "tatoeba-en-it": {
        2: f"{TEXT} model.dropout=0",
        10: "data.vocab_size=6000 model.d_model=256 model.d_ff=1024 model.heads=4 model.encoder_layers=3 "
        "model.decoder_layers=2 model.dropout=0 train.label_smoothing=0.1 train.learning_rate=0.004 "
        "train.batch_tokens=1024",
    },
    "tatoeba-en-fr": {2: f"{TEXT} model.dropout=0"},
    "roman": {2: f"{CHARACTERS} {MEDIUM}"},
    "greek": {2: f"{CHARACTERS} {MEDIUM}"},
    "spelling": {
        2: f"data.vocabulary=bpe data.vocab_size=500 clean.drop_copies=0 {EXACT} {NARROW} train.batch_tokens=512",
    },
    "parts": {2: f"{CHARACTERS} {MEDIUM}"},
    "sorting": {2: f"{CHARACTERS} {NARROW}"},
    "numbers": {2: f"{CHARACTERS} {NARROW}"},
    "backwards": {2: f"{CHARACTERS} {NARROW}"},
    "cipher": {2: PHRASES},
    "spaces": {2: PHRASES},
    "accents": {2: f"{PHRASES} clean.drop_copies=0"},
    "typos": {2: f"{PHRASES} clean.drop_copies=0"},
    "few-en-fr": {2: f"{TEXT} data.vocab_size=1000 model.dropout=0.2 train.batch_tokens=512"},
}


class Run(NamedTuple):
    """A run to make, or made: `settings` are those beside the automatic ones. The score is from 0 to 100."""

    task: str
    metric: str
    minutes: float
    seed: int
    settings: str
    score: float = nan
    wall: float = nan
    processor: float = nan

    @property
    def key(self) -> tuple[str | float, ...]:
        """What tells runs apart."""
        return self.task, self.minutes, self.seed, self.settings

    def is_try(self, automatic: "Run") -> bool:
        """Return True if this run has more settings than an automatic run of the same task and budget, of any seed."""
        is_same = (self.task, self.minutes) == (automatic.task, automatic.minutes)
        return is_same and self.settings != automatic.settings and self.settings.endswith(automatic.settings)


def make(run: Run, train: list[str], valid: list[str], test: Pairs, output: Path) -> Run:
    """Train in a process of its own within the minutes of a run, and score the model on the test pairs."""
    known = [f"data.valid={valid}"] if valid else []
    command = [
        sys.executable, "-m", "allyouneed", "train", *train, "--minutes", f"{run.minutes}", "--output", str(output),
        f"train.seed={run.seed}", *known, *run.settings.split(),
    ]  # fmt: skip
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    score = evaluate(Translator.load(output, beam=1), test).scores[run.metric]
    return run._replace(score=score, wall=wall, processor=processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, help="folder of the corpora")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help=f"of {', '.join([*STORED, *MADE_COUNTS])}")
    parser.add_argument("--minutes", nargs="+", type=float, default=[2.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--sides", nargs="+", choices=["automatic", "hand"], default=["automatic", "hand"])
    parser.add_argument("--settings", nargs="+", default=[], help="more settings of every run, such as train.workers=1")
    parser.add_argument("--try", dest="tried", nargs="+", help="make runs with these settings instead; no table")
    parser.add_argument("--record", type=Path, help="file of the runs made, which are not repeated")
    parser.add_argument("--keep", type=Path, help="folder that keeps the folders of the runs")
    options = parser.parse_args()
    tasks = options.tasks or ([*STORED, *MADE_COUNTS] if options.corpora else [*GENERATED])
    made = {run.key: run for run in read_runs(options.record)}
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}\n", flush=True)
    head = "task metric minutes seed automatic by-hand of-it tries wall-s processor-s settings-by-hand"
    print(f"| {' | '.join(head.split())} |".replace("-", " "))
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|", flush=True)
    for task in tasks:
        with tempfile.TemporaryDirectory() as folder:
            train, valid, test, metric = corpus(task, options.corpora, Path(folder))
            for minutes, seed in product(options.minutes, options.seeds):
                sides = {"automatic": "", "hand": expert(task, minutes)}
                settings = [" ".join(options.tried)] if options.tried else [sides[side] for side in options.sides]
                runs = [
                    Run(task, metric, minutes, seed, " ".join([some, *options.settings]).strip()) for some in settings
                ]
                for run in runs:
                    if run.key not in made:
                        output = free_folder(options.keep or Path(folder), f"{task}-{minutes:g}-{seed}")
                        made[run.key] = make(run, train, valid, test, output)
                        write_run(options.record, made[run.key])
                if options.tried:
                    print(f"{made[runs[0].key].score:.1f} {runs[0].settings}", flush=True)
                    continue
                automatic = Run(task, metric, minutes, seed, " ".join(options.settings))
                tried = [run for run in made.values() if run.is_try(automatic)]
                print(row(made.get(automatic.key, automatic), tried), flush=True)


def free_folder(folder: Path, name: str) -> Path:
    """Return an unused path in a folder: the name and a number."""
    return next(path for number in count() if not (path := folder / f"{name}-{number}").exists())


def expert(task: str, minutes: float) -> str:
    """Return the settings found by hand for a task and the next larger budget that was tried."""
    budgets = EXPERTS[task]
    return budgets[next((most for most in budgets if minutes <= most), max(budgets))]


def row(automatic: Run, tried: Sequence[Run]) -> str:
    """Write a row of the table: the automatic choice, and the best of the runs with settings found by hand."""
    best = max(tried, key=lambda run: run.score, default=automatic._replace(score=nan))
    share = "–" if isnan(automatic.score / (best.score or nan)) else f"{automatic.score / best.score:.0%}"
    runs = [run for run in (automatic, best) if not isnan(run.score)]
    walls, processors = (", ".join(f"{run[at]:.0f}" for run in runs) for at in (-2, -1))
    head = f"{automatic.task} | {automatic.metric} | {automatic.minutes:g} | {automatic.seed}"
    scores = " | ".join("–" if isnan(run.score) else f"{run.score:.1f}" for run in (automatic, best))
    settings = brief(best.settings.removesuffix(automatic.settings))
    return f"| {head} | {scores} | {share} | {len(tried)} | {walls} | {processors} | {settings} |"


def brief(settings: str) -> str:
    """Shorten settings: each once, without the names of their tables."""
    values = dict(setting.partition(".")[2].split("=", 1) for setting in settings.split())
    return " ".join(f"{name}={value}" for name, value in values.items())


def read_runs(file: Path | None) -> list[Run]:
    """Read the runs of a record, one JSON object a line."""
    if file is None or not file.exists():
        return []
    return [Run(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def write_run(file: Path | None, run: Run) -> None:
    """Add a run to the record."""
    if file:
        with file.open("a", encoding="utf-8") as stream:
            print(json.dumps(run._asdict()), file=stream)


def corpus(task: str, folder: Path | None, scratch: Path) -> tuple[list[str], list[str], Pairs, str]:
    """Return training files, validation files, test pairs and metric of a task."""
    if folder is None and task not in GENERATED:
        raise SystemExit(f"{task} needs --corpora FOLDER")
    if folder and task in STORED:
        files = STORED[task]
        train, valid = ([str(folder / name) for name in part] for part in (files.train, files.valid))
        return train, valid, read_pairs(tuple(folder / name for name in files.test)), files.metric
    pairs = made_pairs(task, folder)
    cut = len(pairs) * 9 // 10
    path = scratch / f"{task}.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs[:cut]), encoding="utf-8")
    return [str(path)], [], pairs[cut:], "bleu" if task == "few-en-fr" else "exact"


if __name__ == "__main__":
    main()
