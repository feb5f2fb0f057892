"""What `allyouneed train PAIRS --minutes N` reaches beside settings found by hand, in the same minutes.

    python benchmarks/auto.py --corpora FOLDER [--tasks add sql …] [--minutes 2] [--seeds 1]

FOLDER holds the corpora of `auto_tasks.py`; without it, only the tasks that are made there are run. For each task and
budget one run chooses everything itself, another has the settings of `EXPERTS`, the best of at most ten tries each.
Both score the test pairs with greedy search: exact match, or BLEU for translations. Runs follow one another. Wall
clock is of the whole command, processor time of all its processes.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch
from auto_tasks import MADE_COUNTS, STORED, Pairs, made_pairs, read_pairs

from allyouneed import Translator, evaluate

CHARACTERS = "data.vocabulary=characters model.dropout=0 train.label_smoothing=0 train.learning_rate=0.005"
NARROW = "model.d_model=128 model.d_ff=512 model.heads=4 model.encoder_layers=2 model.decoder_layers=2"
CAPTIONS = (
    "data.vocab_size=8000 model.d_model=256 model.d_ff=1024 model.heads=4 model.encoder_layers=3 "
    "model.decoder_layers=3 model.dropout=0.25 train.label_smoothing=0.1 train.learning_rate=0.003"
)
EXPERTS = {
    "add": f"{CHARACTERS} {NARROW}",
    "sql": f"data.vocabulary=bpe {NARROW} model.dropout=0 train.label_smoothing=0 train.learning_rate=0.005",
    "g2p": f"{CHARACTERS} {NARROW}",
    "multi30k": CAPTIONS,
    "tatoeba-en-it": f"{CAPTIONS} model.dropout=0.1",
    "tatoeba-en-fr": f"{CAPTIONS} model.dropout=0.1",
    "roman": f"{CHARACTERS} {NARROW}",
    "greek": f"{CHARACTERS} {NARROW}",
    "spelling": f"{CHARACTERS} {NARROW}",
    "parts": f"{CHARACTERS} {NARROW}",
}


class Result(NamedTuple):
    """The score of a run from 0 to 100, and what it took."""

    score: float
    wall: float
    processor: float


def run(train: list[str], valid: list[str], test: Pairs, metric: str, *, minutes: float, settings: list[str]) -> Result:
    """Train in a process of its own within `minutes`, and score the model on the test pairs."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "run")
        known = [f"data.valid={valid}"] if valid else []
        command = [
            sys.executable, "-m", "allyouneed", "train", *train, "--minutes", f"{minutes}", "--output", str(output),
            *known, *settings,
        ]  # fmt: skip
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Result(evaluate(Translator.load(output, beam=1), test).scores[metric], wall, processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, help="folder of the corpora")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help=f"of {', '.join([*STORED, *MADE_COUNTS])}")
    parser.add_argument("--minutes", nargs="+", type=float, default=[2.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    options = parser.parse_args()
    tasks = options.tasks or [*(STORED if options.corpora else ()), *MADE_COUNTS]
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}\n", flush=True)
    print("| task | metric | minutes | seed | automatic | by hand | of it | wall s | processor s |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for task in tasks:
        with tempfile.TemporaryDirectory() as folder:
            train, valid, test, metric = corpus(task, options.corpora, Path(folder))
            for minutes in options.minutes:
                for seed in options.seeds:
                    chosen, by_hand = (
                        run(train, valid, test, metric, minutes=minutes, settings=[f"train.seed={seed}", *settings])
                        for settings in ([], EXPERTS[task].split())
                    )
                    share = f"{chosen.score / by_hand.score:.0%}" if by_hand.score else "–"
                    print(
                        f"| {task} | {metric} | {minutes:g} | {seed} | {chosen.score:.1f} | {by_hand.score:.1f} "
                        f"| {share} | {chosen.wall:.0f}, {by_hand.wall:.0f} "
                        f"| {chosen.processor:.0f}, {by_hand.processor:.0f} |",
                        flush=True,
                    )


def corpus(task: str, folder: Path | None, scratch: Path) -> tuple[list[str], list[str], Pairs, str]:
    """Training files, validation files, test pairs and metric of a task."""
    if task in STORED:
        if folder is None:
            raise SystemExit(f"{task} needs --corpora FOLDER")
        files = STORED[task]
        train, valid = ([str(folder / name) for name in part] for part in (files.train, files.valid))
        return train, valid, read_pairs(tuple(folder / name for name in files.test)), files.metric
    pairs = made_pairs(task, MADE_COUNTS[task])
    cut = len(pairs) * 9 // 10
    path = scratch / f"{task}.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs[:cut]), encoding="utf-8")
    return [str(path)], [], pairs[cut:], "exact"


if __name__ == "__main__":
    main()
