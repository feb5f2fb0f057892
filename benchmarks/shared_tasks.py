"""What `allyouneed train PAIRS --minutes N` reaches on public shared tasks, next to the published figures.

    python benchmarks/shared_tasks.py FOLDER (--all | --only inflection-small …) [--minutes 2 10] [--record runs.jsonl]

FOLDER holds `sigmorphon-inflection-2022`, `sigmorphon-g2p`, `scan` and `cogs`: pairs as TSV, gzip. The command trains
on the training file alone; validation pairs, where a task has them, choose the best model and are what is answered
here. The search is the default, a beam of 4; `--settings decode.beam=1` makes it greedy. Of SCAN a twentieth of the
training pairs is held out. What `scan-length-26` asks, commands of more than 26 actions, is answered for those that the
random split has. A row is printed as each run ends, with the processor time of its training, which is less than the
minutes on a busy machine, and a 95 % interval by Wilson's formula. With `--record` each result is added to a file, and
results that the file has are not measured again, so that a stopped run continues.

The published test of inflection asks four kinds of questions about equally often: lemma and set of tags both seen in
training but not together, only the lemma, only the tags, neither. Validation pairs have other shares of them, so the
mean of the four kinds is what compares with the published figures.
"""

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from allyouneed import Translator

Pairs = list[tuple[str, str]]

INFLECTION, SOUNDS = "sigmorphon-inflection-2022", "sigmorphon-g2p"
# Published, per cent right on the test pairs: the better of the two leading systems (CLUZH and UBC), and the plain
# Transformer, which writes no spaces.
SMALL = {
    "ang": (54.2, 49.8), "ara": (66.6, 66.0), "asm": (57.3, 54.7), "bra": (60.4, 55.0), "ckt": (21.7, 6.5),
    "evn": (34.5, 29.3), "gml": (56.7, 42.7), "goh": (60.6, 56.4), "heb": (40.9, 39.7), "hsb": (15.0, 5.0),
    "hsi": (16.7, 0.0), "hun": (61.8, 65.0), "hye": (86.3, 64.8), "itl": (34.4, 34.3), "kaz": (65.7, 55.7),
    "ket": (33.6, 10.9), "khk": (41.8, 41.6), "kor": (50.5, 23.5), "lud": (87.7, 46.6), "mag": (64.4, 51.2),
    "non": (52.4, 55.9), "sjo": (76.7, 58.6), "slk": (84.1, 61.0), "slp": (30.4, 15.2), "tur": (85.8, 34.6),
    "vep": (42.1, 35.6),
}  # fmt: skip
LARGE = {
    "ang": (64.9, 61.1), "ara": (75.9, 78.5), "asm": (75.6, 76.8), "evn": (57.5, 57.7), "heb": (51.8, 48.5),
    "hun": (74.9, 77.2), "hye": (93.4, 69.8), "kaz": (65.7, 55.7), "khk": (47.9, 49.1), "kor": (54.7, 56.2),
    "lud": (73.1, 53.0), "non": (87.2, 85.0), "slk": (94.0, 70.1), "tur": (94.2, 39.7), "vep": (62.3, 48.8),
}  # fmt: skip
# Published, per cent right on these validation pairs: an ensemble of ten transducers, the baseline of the task.
SOUNDS_2021: dict[str, dict[str, float]] = {
    "2021-low": {"ady": 78, "gre": 95, "ice": 89, "ita": 78, "lav": 59, "rum": 90, "wel_sw": 84},
    "2021-medium": {
        "arm_e": 95.5, "bul": 91.7, "dut": 89.2, "geo": 100, "hbs_latn": 65.3, "hun": 98.5, "jpn_hira": 93.8,
        "vie_hanoi": 98.7,
    },
    "2021-high": {"eng_us": 54.9},
}  # fmt: skip
HELD_OUT = 20  # every 20th pair


class Task(NamedTuple):
    """Training pairs, pairs to answer, whether the run has these as its validation pairs, and published figures."""

    train: Path
    valid: Path | None
    published: str
    longest: int = 0  # of another file those pairs are answered whose targets have more symbols


def tasks(folder: Path) -> dict[str, Task]:
    """Return every task by its name."""
    known = {
        f"inflection-{size}-{language}": Task(
            folder / INFLECTION / f"{language}_{size}.train.tsv.gz",
            folder / INFLECTION / f"{language}.valid.tsv.gz",
            f"{best} leading system, {plain} plain Transformer",
        )
        for size, languages in (("small", SMALL), ("large", LARGE))
        for language, (best, plain) in languages.items()
    }
    known |= {
        f"sounds-{year}-{language}": Task(
            folder / SOUNDS / year / f"{language}.train.tsv.gz",
            folder / SOUNDS / year / f"{language}.valid.tsv.gz",
            f"{right} ensemble of ten",
        )
        for year, languages in SOUNDS_2021.items()
        for language, right in languages.items()
    }
    simple = folder / "scan" / "simple.train.tsv.gz"
    known["scan-simple"] = Task(simple, None, "100")
    known["scan-length-26"] = Task(folder / "scan" / "length-26.train.tsv.gz", simple, "100 relative positions", 26)
    known["cogs"] = Task(folder / "cogs" / "train.tsv.gz", folder / "cogs" / "valid.tsv.gz", "99 on its test")
    return known


def read(path: Path) -> Pairs:
    """Read the pairs of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [(source, target) for source, _, target in (line.rstrip("\n").partition("\t") for line in lines)]


def write(path: Path, pairs: Iterable[tuple[str, str]]) -> str:
    """Write pairs as TSV; returns the path."""
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


class Outcome(NamedTuple):
    """Right answers, questions, processor seconds of the training, and right answers and questions of each kind."""

    right: int
    questions: int
    seconds: float
    kinds: dict[str, tuple[int, int]]

    @property
    def mean_of_kinds(self) -> str:
        """The mean of the kinds' per cent right; empty for tasks without kinds."""
        shares = [100 * right / count for right, count in self.kinds.values()]
        return f"{sum(shares) / len(shares):.1f}" if shares else ""


def run(task: Task, minutes: float, settings: list[str], folder: Path) -> Outcome:
    """Train within the minutes in a process of its own, and answer the questions."""
    train, options = read(task.train), []
    if task.longest or task.valid is None:
        longer = read(task.valid) if task.valid else train[::HELD_OUT]
        questions = [pair for pair in longer if len(pair[1].split()) > task.longest]
        held_out = set(questions)
        train = [pair for pair in train if pair not in held_out]
    else:
        questions = read(task.valid)
        options = [f"data.valid={write(folder / 'valid.tsv', questions)}"]
    file, output = write(folder / "train.tsv", train), folder / "run"
    command = [sys.executable, "-m", "allyouneed", "train", file, "--minutes", f"{minutes:g}", "--output", str(output)]
    before = processor_seconds()
    subprocess.run([*command, *options, *settings], check=True, stdout=subprocess.DEVNULL)
    seconds = processor_seconds() - before
    answers = Translator.load(output).translate([source for source, _ in questions])
    is_right = [answer == target for answer, (_, target) in zip(answers, questions, strict=True)]
    kinds = count_kinds(train, questions, is_right) if INFLECTION in task.train.parts else {}
    return Outcome(sum(is_right), len(questions), seconds, kinds)


def count_kinds(train: Pairs, questions: Pairs, is_right: Sequence[bool]) -> dict[str, tuple[int, int]]:
    """Count right answers and questions by what training has: the lemma, the set of tags, both or neither."""

    def parts(source: str) -> tuple[str, frozenset[str]]:
        lemma, _, tags = source.rpartition(" ")
        return lemma, frozenset(tags.split(";"))

    seen = [parts(source) for source, _ in train]
    lemmas = {lemma for lemma, _ in seen}
    all_tags = {tags for _, tags in seen}
    kinds: dict[str, tuple[int, int]] = {}
    for (source, _), was_right in zip(questions, is_right, strict=True):
        lemma, tags = parts(source)
        kind = " ".join(["lemma"] * (lemma in lemmas) + ["tags"] * (tags in all_tags)) or "neither"
        right, count = kinds.get(kind, (0, 0))
        kinds[kind] = right + was_right, count + 1
    return kinds


def recorded(path: Path | None) -> dict[str, Outcome]:
    """Read the outcomes of a record, by name, minutes and settings."""
    if path is None or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["run"]: Outcome(**{name: row[name] for name in Outcome._fields}) for row in rows}


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wilson(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % interval of a share, in per cent."""
    share, spread = right / count, z * z / count
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / count + spread / count / 4)
    return max(0.0, 100 * (middle - half) / (1 + spread)), 100 * (middle + half) / (1 + spread)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the corpora")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="every task, which takes many hours")
    which.add_argument("--only", nargs="+", metavar="TASK", help="these tasks; a beginning of names is enough")
    parser.add_argument("--minutes", nargs="+", type=float, default=[2.0, 10.0, 30.0])
    parser.add_argument("--settings", nargs="+", default=[], help="settings of every run, such as train.workers=1")
    parser.add_argument("--keep", type=Path, help="folder that keeps the folders of the runs")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the results there, and measure what it lacks")
    options = parser.parse_args()
    chosen = {
        name: task
        for name, task in tasks(options.folder).items()
        if options.all or name.startswith(tuple(options.only))
    }
    print(f"{os.cpu_count()} cores, {time.strftime('%Y-%m-%d')} {' '.join(options.settings)}\n")
    print(
        "| task | pairs | minutes | processor, s | right, % | 95 % interval | of | mean of kinds, % | published, % |\n"
        "|---|---:|---:|---:|---:|---|---:|---:|---|"
    )
    known = recorded(options.record)
    for name, task in chosen.items():
        for minutes in options.minutes:
            key = " ".join([name, f"{minutes:g}", *options.settings])
            if key not in known:
                known[key] = measure(name, task, minutes, options)
                if options.record:
                    with options.record.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"run": key} | known[key]._asdict()) + "\n")
            print_row(name, task, minutes, known[key])


def measure(name: str, task: Task, minutes: float, options: argparse.Namespace) -> Outcome:
    """Run a task in a folder that is removed afterwards or kept, as the options say."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep / f"{name}-{minutes:g}" if options.keep else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        return run(task, minutes, options.settings, folder)


def print_row(name: str, task: Task, minutes: float, found: Outcome) -> None:
    """Print a row of the table."""
    low, high = wilson(found.right, found.questions)
    row = f"| {name} | {len(read(task.train)):,} | {minutes:g} | {found.seconds:.0f} "
    row += f"| {100 * found.right / found.questions:.1f} | {low:.1f}–{high:.1f} | {found.questions:,} "
    print(f"{row}| {found.mean_of_kinds} | {task.published} |", flush=True)


if __name__ == "__main__":
    main()
