"""Training speed on a GPU: tokens a second, the share of the card's peak, and hours to the paper's 100,000 updates.

    python benchmarks/gpu.py [--sizes base big] [--updates 50] [--batch-tokens 25000] [--peak TFLOPS]

Ours and, where transformers can be imported, `MarianMTModel` of the same size by the usual loop of PyTorch, on the same
batches of random ids in sentences of the lengths of WMT's, in bfloat16. "Useful" is matrix work for real tokens alone,
by formula; its share is that of the card's dense bfloat16 peak, which its maker's data sheet has. Without a GPU it says
so and ends with exit code 2.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.util import find_spec
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from train_worker import our_updates, transformers_updates, useful_flops

from allyouneed import ModelConfig, Recipe, recipe_path
from allyouneed.data.sampler import batches
from allyouneed.data.store import EncodedPairs, Side

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
    return EncodedPairs(source, target, 0)


def measure(size: str, system: str, config: ModelConfig, *, batch_tokens: int, updates: int) -> Row:
    """Train for some updates on the GPU, or where there is none on the CPU, and take the time."""
    pairs = random_pairs(config.vocab_size, BATCHES * batch_tokens // 20)
    some = list(islice(batches(pairs, batch_tokens=batch_tokens, seed=1, pad_id=config.pad_id), BATCHES))
    setup: dict[str, Any] = {"model": asdict(config), "optimizer": "adam", "device": default_device().type}
    stored = [(batch.source, batch.target) for batch in some]
    done: Iterator[object] = {"ours": our_updates, "transformers": transformers_updates}[system](
        setup, cycle(stored), "bfloat16"
    )
    for _ in islice(done, WARM_UP):
        pass
    wait()
    begin = time.perf_counter()
    for _ in islice(done, updates):
        pass
    wait()
    seconds = time.perf_counter() - begin
    work = [useful_flops(setup, stored[number % len(stored)]) for number in range(WARM_UP, WARM_UP + updates)]
    return Row(size, system, sum(one[1] for one in work), sum(one[0] for one in work), updates, seconds)


def paper_model(size: str) -> ModelConfig:
    """The model of a row of Table 3, with the paper's 37,000 tokens."""
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
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("make bench-gpu needs a CUDA GPU, and PyTorch finds none here", file=sys.stderr)
        return 2
    card = torch.cuda.get_device_name()
    print(f"{card}, torch {torch.__version__}, bfloat16, batches of {options.batch_tokens:,} tokens\n")
    systems = ["ours", *(["transformers"] if find_spec("transformers") else [])]
    rows = [
        measure(size, system, paper_model(size), batch_tokens=options.batch_tokens, updates=options.updates)
        for size in options.sizes
        for system in systems
    ]
    print(table(rows, peak=peak_flops(card, options.peak)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
