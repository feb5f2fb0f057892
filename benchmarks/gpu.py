"""Training on a GPU: tokens a second, share of the card's peak, hours to the paper's 100,000 updates, BLEU by minutes.

    python benchmarks/gpu.py [--sizes base big] [--updates 50] [--batch-tokens 25000] [--peak TFLOPS] [--no-compile]
                             [--captions FOLDER] [--tatoeba FOLDER] [--minutes 10] [--cpu]

Four systems, on the same batches of random ids in sentences of the lengths of WMT's, in bfloat16: ours; ours with
encoder and decoder compiled by `torch.compile`; where transformers can be imported, `MarianMTModel` of the same size by
the usual loop of PyTorch; and where accelerate can be imported too, the same model by `Seq2SeqTrainer`. "Useful" is
matrix work for real tokens alone, by formula; its share is that of the card's dense bfloat16 peak, which its maker's
data sheet has. With the folders of Multi30K's and Tatoeba's files, `allyouneed train --minutes` is run for the recipe
of each, and the BLEU of its validations is listed by minutes. Without a GPU it says so and ends with exit code 2,
unless --cpu tries the command with `--sizes tiny`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from train_worker import transformers_updates, useful_flops

from allyouneed import ModelConfig, Recipe, Transformer, recipe_path
from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch, batches
from allyouneed.data.pairs import EncodedPairs, Side
from allyouneed.fast.passes import choose_loss, made_ahead
from allyouneed.train import add_gradients, make_optimizer, updates

PEAKS = {"H200": 989, "H100 PCIe": 756, "H100": 989, "A100": 312, "L40": 181, "L4": 121, "A10": 125, "4090": 165}
WARM_UP = 5  # updates that are not counted
BATCHES = 20
PAPER_UPDATES = 100_000


class Row(NamedTuple):
    """What was measured of one system: real target tokens and useful operations of some updates, and their time."""

    size: str
    system: str
    tokens: int
    flops: float
    updates: int
    seconds: float


def peak_flops(card: str, given_teraflops: float) -> float:
    """The dense bfloat16 peak of a card, operations a second; 0 if it is not known."""
    known = next((peak for name, peak in PEAKS.items() if all(part in card for part in name.split())), 0)
    return 1e12 * (given_teraflops or known)


def random_pairs(vocab_size: int, count: int) -> EncodedPairs:
    """Random ids in sentences of about 25 tokens."""
    rng = np.random.default_rng(1)
    lengths = np.clip(rng.gamma(4, 6.5, (2, count)), 4, 120).astype(int)
    source, target = (Side.from_sentences([rng.integers(3, vocab_size, n).tolist() for n in side]) for side in lengths)
    return EncodedPairs(source, target)


def our_updates(setup: dict[str, Any], stored: Sequence[tuple[Any, Any]], *, compiled: bool) -> Iterator[object]:
    """Updates of ours, without end, as in a run: batches come from a thread, and the optimizer is the paper's."""
    model = Transformer(ModelConfig(**setup["model"])).to(setup["device"])
    if compiled:
        model.encoder.compile(dynamic=True)
        model.decoder.compile(dynamic=True)
    config = TrainConfig(steps=10**6, precision="bfloat16")
    loss_of, _ = choose_loss(model, config)
    feed = made_ahead((Batch(*pair) for pair in cycle(stored)), loss_of, model, config)
    gradients = partial(add_gradients, loss_of=loss_of)
    return updates(model, make_optimizer(model, config), feed, config, gradients=gradients)


def time_updates(done: Iterator[object], count: int) -> float:
    """The seconds of `count` updates after the first `WARM_UP`."""
    for _ in islice(done, WARM_UP):
        pass
    wait()
    begin = time.perf_counter()
    for _ in islice(done, count):
        pass
    wait()
    return time.perf_counter() - begin


def measure(size: str, system: str, config: ModelConfig, *, batch_tokens: int, updates: int) -> Row:
    """Train for some updates on the GPU, or where there is none on the CPU, and take the time."""
    pairs = random_pairs(config.vocab_size, BATCHES * batch_tokens // 20)
    some = list(islice(batches(pairs, batch_tokens=batch_tokens, seed=1, pad_id=config.pad_id), BATCHES))
    setup: dict[str, Any] = {"model": asdict(config), "device": default_device().type}
    stored = [(batch.source, batch.target) for batch in some]
    if system == "Trainer":
        from gpu_trainer import trainer_seconds

        seconds = trainer_seconds(setup, stored, warm_up=WARM_UP, updates=updates, wait=wait)
    else:
        make = {
            "ours": partial(our_updates, setup, stored, compiled=False),
            "ours, compiled": partial(our_updates, setup, stored, compiled=True),
            "usual loop": partial(transformers_updates, setup, cycle(stored), "bfloat16"),
        }[system]
        seconds = time_updates(make(), updates)
    work = [useful_flops(setup, stored[number % len(stored)]) for number in range(WARM_UP, WARM_UP + updates)]
    return Row(size, system, sum(one[1] for one in work), sum(one[0] for one in work), updates, seconds)


def systems(*, compiles: bool) -> list[str]:
    """What can be measured here."""
    has_peers = find_spec("transformers") is not None
    return [
        "ours",
        *(["ours, compiled"] if compiles else []),
        *(["usual loop"] if has_peers else []),
        *(["Trainer"] if has_peers and find_spec("accelerate") else []),
    ]


def train_for_minutes(recipe: str, folder: Path, minutes: float) -> str:
    """Train a recipe with the command, and list the BLEU of its validations by minutes, in Markdown."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["allyouneed", "train", recipe, "--minutes", f"{minutes:g}", f"data.data_dir={folder}"]
        subprocess.run(
            [sys.executable, "-m", *command, "--output", f"{scratch}/run"], check=True, stdout=subprocess.DEVNULL
        )
        rows = [json.loads(line) for line in Path(scratch, "run/metrics.jsonl").read_text("utf-8").splitlines()]
    return "\n".join([f"\n`{' '.join(command)}`\n", *bleu_by_minutes(rows)])


def bleu_by_minutes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A table in Markdown of the validations that have a BLEU."""
    lines = ["| minutes | update | BLEU |", "|---:|---:|---:|"]
    scored = [row for row in rows if "bleu" in row]
    return lines + [f"| {row['seconds'] / 60:.1f} | {row['step']:,} | {row['bleu']:.1f} |" for row in scored]


def paper_model(size: str) -> ModelConfig:
    """The model of a row of Table 3, with the paper's 37,000 tokens; or "tiny", to try the command."""
    if size == "tiny":
        return ModelConfig(vocab_size=50, d_model=8, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    return replace(Recipe.read(recipe_path(size)).model, vocab_size=37_000)


def default_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait() -> None:
    """Return when the device has done everything."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def table(rows: list[Row], *, peak: float) -> str:
    """The rows as a table in Markdown; the share is left out where the peak is not known."""
    lines = [
        "| model | system | target tokens/s | useful TFLOP/s | share of peak | hours to 100,000 updates |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        useful, hours = row.flops / row.seconds, row.seconds / row.updates * PAPER_UPDATES / 3600
        share = f"{useful / peak:.0%}" if peak else "unknown"
        speed = f"{row.tokens / row.seconds:,.0f}"
        lines.append(f"| {row.size} | {row.system} | {speed} | {useful / 1e12:.1f} | {share} | {hours:.1f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["base", "big"])
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--batch-tokens", type=int, default=25_000)
    parser.add_argument("--peak", type=float, default=0.0, help="dense bfloat16 peak in TFLOP/s, of an unknown card")
    parser.add_argument("--no-compile", action="store_true", help="leave out ours with torch.compile")
    parser.add_argument("--captions", type=Path, help="the folder of Multi30K's raw files")
    parser.add_argument("--tatoeba", type=Path, help="the folder of Tatoeba's English-Italian files")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each run with --captions or --tatoeba")
    parser.add_argument("--cpu", action="store_true", help="go on without a GPU: its figures mean nothing")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available() and not options.cpu:
        print("make bench-gpu needs a CUDA GPU, and PyTorch finds none here", file=sys.stderr)
        return 2
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{card}, torch {torch.__version__}, bfloat16, batches of {options.batch_tokens:,} tokens\n")
    rows = [
        measure(size, system, paper_model(size), batch_tokens=options.batch_tokens, updates=options.updates)
        for size in options.sizes
        for system in systems(compiles=not options.no_compile)
    ]
    print(table(rows, peak=peak_flops(card, options.peak)))
    for recipe, folder in (("multi30k-en-de", options.captions), ("tatoeba-en-it", options.tatoeba)):
        if folder:
            print(train_for_minutes(recipe, folder, options.minutes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
