"""Training speed of one core beside PyTorch's model, Hugging Face's Marian model and Marian in C++, in alternation.

    python benchmarks/train.py [--sizes tiny small base] [--rounds 3] [--updates 2] [--captions FOLDER]
                               [--warm-up 6] [--systems ours torch.nn transformers marian] [--optimizer muon]
                               [--transformers PYTHON] [--marian PYTHON] [--no-peers]

Every system has one thread and a process of its own for every measurement, one at a time. All train on the same corpus:
ours, `torch.nn.Transformer` and `MarianMTModel` on the same batches, the latter two by the usual loop with AdamW, and
autocast for bfloat16, which is left out where a CPU has no fast instructions for it; Marian has only float32 on a CPU
and makes batches of about as many tokens by itself. All have
the paper's model at the sizes of `SIZES`, tied tables, label smoothing and dropout 0.1; ours has Adam unless
`--optimizer` says otherwise. The corpus is Multi30K, if its folder of raw files is given, else random ids in sentences
of such lengths.

The peers run in environments of their own: `--transformers` and `--marian` name the Python of each, for example after

    python -m venv .peers && .peers/bin/pip install torch==2.13.0 transformers==5.23.0 pymarian==1.12.42

with `.peers/bin/python`, which is also the default of both where it exists. What cannot be imported is left out.

Times are processor time, so that other programs on the machine disturb them less. A round measures each system once,
after `--warm-up` updates that are not timed. Prints medians, and medians of the ratios of rounds, which above 1 say
that ours is faster. "Useful" is matrix work for real tokens alone, by formula, as a share of the rate of a plain
product of 1024 x 1024 matrices in the same process and rounds. Memory is the largest resident set of a process. Then a
profile of ours by kind of operation.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from marian_cpp import MarianProcess

from allyouneed import ModelConfig, Recipe, recipe_path
from allyouneed.data.batch import batches
from allyouneed.data.pairs import EncodedPairs, Side
from allyouneed.data.prepare import prepare
from allyouneed.machine.device import has_fast_bfloat16

SIZES = {
    "tiny": ModelConfig(vocab_size=8_000, d_model=128, d_ff=512, heads=4, encoder_layers=3, decoder_layers=3),
    "small": ModelConfig(vocab_size=8_000, d_model=256, d_ff=1024, heads=4, encoder_layers=3, decoder_layers=3),
    "base": ModelConfig(vocab_size=37_000),
}
SYSTEMS = ("ours", "torch.nn", "transformers", "marian")
DTYPES = ("float32", "bfloat16") if has_fast_bfloat16(torch.device("cpu")) else ("float32",)
BATCH_TOKENS, BATCHES = 2_048, 40
PEERS = Path(__file__).parent.parent / ".peers/bin/python"


def corpus(captions: Path | None, folder: Path) -> EncodedPairs:
    """Return Multi30K with 8,000 subwords, or random ids in sentences of such lengths."""
    if captions:
        recipe = Recipe.read(recipe_path("multi30k-en-de"), [f"data.data_dir={captions}"])
        return prepare(recipe.data, recipe.clean, folder, max_length=recipe.model.max_length).train
    rng = np.random.default_rng(1)
    sources = np.clip(rng.gamma(9, 1.7, 20_000), 4, 60).astype(int)
    targets = np.clip(sources * rng.normal(1, 0.15, len(sources)), 4, 80).astype(int)

    def side(lengths: "np.ndarray[Any, np.dtype[np.int64]]") -> Side:
        return Side.from_sentences([[1, *rng.integers(3, 8_000, n - 2).tolist(), 2] for n in lengths])

    return EncodedPairs(side(sources), side(targets))


class Worker:
    """A system with a process for every measurement, so that the memory of one at a time is taken.

    The process makes some updates before those that are timed, the same number in every measurement.
    """

    def __init__(self, python: str, system: str, dtype: str, folder: Path, *, warm_up: int) -> None:
        program = str(Path(__file__).with_name("train_worker.py"))
        self._command = [python, program, system, dtype, str(folder)]
        self._warm_up, self._next_batch, self._peak = warm_up, 0, 0.0

    def measure(self, updates: int) -> dict[str, float]:
        """Measure processor seconds, target tokens, useful work and the rate of a plain product, over new batches."""
        return self._ask("updates", updates)

    def profile(self, updates: int) -> dict[str, float]:
        """Return the milliseconds of every kind of operation."""
        return self._ask("profile", updates)

    def close(self) -> float:
        """Return the peak memory of all processes, in MB."""
        return self._peak

    def _ask(self, what: str, updates: int) -> dict[str, float]:
        requests = ({"do": "updates", "count": self._warm_up}, {"do": what, "count": updates}, {"do": "memory"})
        command = [*self._command, str(self._next_batch)]
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        run = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
        _, measured, memory = map(json.loads, run.stdout.splitlines())
        self._next_batch += updates
        self._peak = max(self._peak, memory["megabytes"])
        return dict(measured)


def works(python: str, module: str) -> bool:
    """Return True if this Python can import the module."""
    try:
        return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def measure_size(name: str, config: ModelConfig, pairs: EncodedPairs, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        first = list(islice(batches(pairs, batch_tokens=BATCH_TOKENS, seed=1, pad_id=config.pad_id), BATCHES))
        torch.save([(batch.source, batch.target) for batch in first], folder / "batches.pt")
        setup = {"model": asdict(config), "optimizer": options.optimizer}
        (folder / "setup.json").write_text(json.dumps(setup), encoding="utf-8")
        workers: dict[str, Any] = {
            f"{system} {dtype}": Worker(python, system, dtype, folder, warm_up=options.warm_up)
            for system, python in (
                ("ours", sys.executable), ("torch.nn", sys.executable), ("transformers", options.transformers),
            )
            for dtype in DTYPES
            if python and system in options.systems
        }  # fmt: skip
        if options.marian and "marian" in options.systems:
            mean = sum(int((batch.source != config.pad_id).sum()) for batch in first) / len(first)
            workers["marian float32"] = MarianProcess(options.marian, config, pairs, folder, words=round(mean))
        rounds = [
            {system: worker.measure(options.updates) for system, worker in workers.items()}
            for _ in range(options.rounds)
        ]
        profile = workers[f"ours {DTYPES[-1]}"].profile(options.updates) if "ours" in options.systems else {}
        memory = {system: worker.close() for system, worker in workers.items()}
    show(name, rounds, memory)
    if profile:
        total = sum(profile.values())
        shares = ", ".join(f"{kind} {100 * t / total:.0f} %" for kind, t in profile.items())
        print(f"profile of ours {DTYPES[-1]}: {shares}")


def show(name: str, rounds: list[dict[str, dict[str, float]]], memory: dict[str, float]) -> None:
    """Print a line for each system: medians over the rounds."""
    print(f"\n{name:<24}{'target tokens/s':>16}{'ms/update':>11}{'useful GFLOP/s':>16}{'of product':>12}{'MB':>8}")
    for system in rounds[0]:
        speeds = [speed(row[system]) for row in rounds]
        times = [1000 * row[system]["seconds"] / row[system]["updates"] for row in rounds]
        line = f"{system:<24}{statistics.median(speeds):>16,.0f}{statistics.median(times):>11.1f}"
        if "flops" in rounds[0][system]:
            useful = statistics.median(row[system]["flops"] / row[system]["seconds"] for row in rounds) / 1e9
            share = statistics.median(
                row[system]["flops"] / row[system]["seconds"] / row[system]["product"] for row in rounds
            )
            line += f"{useful:>16.0f}{100 * share:>10.0f} %"
        else:
            line += " " * 28
        print(line + f"{memory[system]:>8,.0f}", flush=True)
    peers = [system for system in rounds[0] if not system.startswith("ours")]
    for ours in (system for system in rounds[0] if system.startswith("ours") and peers):
        ratios = {
            system: statistics.median(speed(row[ours]) / speed(row[system]) for row in rounds) for system in peers
        }
        print(f"{ours} is faster " + ", ".join(f"{ratio:.2f} x than {system}" for system, ratio in ratios.items()))


def speed(measured: dict[str, float]) -> float:
    """Return target tokens a second."""
    return measured["tokens"] / measured["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["tiny", "small"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=2, help="updates of each system in a round")
    parser.add_argument("--warm-up", type=int, default=6, help="updates of each process before those that are timed")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--captions", type=Path, help="the folder of Multi30K's raw files")
    parser.add_argument("--optimizer", choices=("adam", "adamw", "muon"), default="adam")
    default = str(PEERS) if PEERS.exists() else sys.executable
    parser.add_argument("--transformers", default=default, help="the Python that has transformers")
    parser.add_argument("--marian", default=default, help="the Python that has pymarian")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    for peer, module in (("transformers", "transformers"), ("marian", "pymarian")):
        if options.no_peers or not works(getattr(options, peer), module):
            setattr(options, peer, "")
            print(f"without {peer}: " + ("--no-peers" if options.no_peers else f"{module} cannot be imported"))
    print(f"torch {torch.__version__}, 1 thread, {options.rounds} rounds of {options.updates} updates, processor time")
    with tempfile.TemporaryDirectory() as folder:
        pairs = corpus(options.captions, Path(folder))
        for name in options.sizes:
            measure_size(name, SIZES[name], pairs, options)


if __name__ == "__main__":
    main()
