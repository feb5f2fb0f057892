"""Training and translating on a GPU: checks, tokens a second, share of the card's peak, BLEU by minutes.

    python benchmarks/gpu.py [--sizes base big] [--updates 50] [--batch-tokens 25000] [--peak TFLOPS] [--no-compile]
                             [--captions FOLDER] [--tatoeba FOLDER] [--minutes 10] [--cpu]

First checks: whether the fast pass is used, where an update waits, whether equal runs have equal weights. Then speed of
searches, each precision with and without CUDA graphs. Then training on random ids in sentences of the lengths of WMT's:
ours in bfloat16, also with layers compiled after the comparison with the definition, and in float32; and where
transformers and accelerate can be imported, `MarianMTModel` of the same size by the usual loop of PyTorch and by
`Seq2SeqTrainer`. "Useful" is matrix work for real tokens alone, by formula; its share is that of the card's dense
bfloat16 peak in its maker's data sheet. Every row is printed as soon as it is measured. With the folders of Multi30K's
and Tatoeba's files, `allyouneed train --minutes` is run for the recipe of each, and the BLEU of its validations is
listed by minutes. Without a GPU it says so and ends with exit code 2, unless --cpu tries the command with `--sizes
tiny`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import date
from functools import cache, partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from gpu_decode import Speed, measure_decoding
from train_worker import transformers_updates, useful_flops

from allyouneed import ModelConfig, Recipe, Transformer, recipe_path
from allyouneed.config import TrainConfig
from allyouneed.data.batch import Batch, batches
from allyouneed.data.pairs import EncodedPairs, Side
from allyouneed.fast.passes import choose_loss, made_ahead
from allyouneed.train import Update, add_gradients, make_optimizer, updates

PEAKS = {"H200": 989, "H100 PCIe": 756, "H100": 989, "A100": 312, "L40": 181, "L4": 121, "A10": 125, "4090": 165}
WARM_UP = 5  # updates that are not counted
BATCHES = 20
PAPER_UPDATES = 100_000
OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, compiled": {"compiled": True},
    "ours, float32": {"precision": "float32"},
}


class Row(NamedTuple):
    """What was measured of one system: real target tokens and useful operations of some updates, and their time."""

    size: str
    system: str
    tokens: int
    flops: float
    updates: int
    seconds: float


def peak_flops(card: str, given_teraflops: float) -> float:
    """Return the dense bfloat16 peak of a card, operations a second; 0 if it is not known."""
    known = next((peak for name, peak in PEAKS.items() if all(part in card for part in name.split())), 0)
    return 1e12 * (given_teraflops or known)


def random_pairs(vocab_size: int, count: int) -> EncodedPairs:
    """Draw random ids in sentences of about 25 tokens; a target is about as long as its source."""
    rng = np.random.default_rng(1)
    of_sources = rng.gamma(4, 6.5, count)
    of_targets = of_sources * rng.normal(1.05, 0.15, count)
    lengths = (np.clip(side, 4, 120).astype(int) for side in (of_sources, of_targets))
    source, target = (Side.from_sentences([rng.integers(3, vocab_size, n).tolist() for n in side]) for side in lengths)
    return EncodedPairs(source, target)


def our_updates(
    setup: dict[str, Any],
    stored: Sequence[tuple[Any, Any]],
    *,
    precision: Literal["float32", "bfloat16"] = "bfloat16",
    compiled: bool = False,
) -> Iterator[Update]:
    """Yield updates of ours, without end, as in a run: batches come from a thread, and the optimizer is the paper's."""
    device = torch.device(setup["device"])
    torch.manual_seed(1)
    model = Transformer(ModelConfig(**setup["model"])).to(device)
    config = TrainConfig(steps=10**6, precision=precision)
    loss_of, reason = choose_loss(model, config)
    if reason:
        print(reason, file=sys.stderr)
    if compiled:  # only now: in the comparison every kind of pass would be compiled, too
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.compile(dynamic=True)
    endless = (Batch(*pair) for pair in cycle(stored))
    feed = made_ahead(endless, loss_of, model, config)
    gradients = partial(add_gradients, loss_of=loss_of)
    return updates(model, make_optimizer(model, config), feed, config, gradients=gradients)


def time_updates(done: Iterator[object], count: int) -> float:
    """Measure the seconds of `count` updates after the first `WARM_UP`."""
    for _ in islice(done, WARM_UP):
        pass
    wait()
    begin = time.perf_counter()
    for _ in islice(done, count):
        pass
    wait()
    return time.perf_counter() - begin


@cache
def stored_batches(size: str, batch_tokens: int) -> list[tuple[Any, Any]]:
    """Make the batches of a size once."""
    config = paper_model(size)
    pairs = random_pairs(config.vocab_size, BATCHES * batch_tokens // 20)
    chosen = islice(batches(pairs, batch_tokens=batch_tokens, seed=1, pad_id=config.pad_id), BATCHES)
    return [(batch.source, batch.target) for batch in chosen]


def measure(size: str, system: str, *, batch_tokens: int, updates: int) -> Row:
    """Train for some updates on the GPU, or where there is none on the CPU, and take the time."""
    setup: dict[str, Any] = {"model": asdict(paper_model(size)), "device": default_device().type}
    stored = stored_batches(size, batch_tokens)
    if system == "Trainer":
        from gpu_trainer import trainer_seconds

        seconds = trainer_seconds(setup, stored, warm_up=WARM_UP, updates=updates, wait=wait)
    elif system == "usual loop":
        seconds = time_updates(transformers_updates(setup, cycle(stored), "bfloat16"), updates)
    else:
        seconds = time_updates(our_updates(setup, stored, **OURS[system]), updates)
    work = [useful_flops(setup, stored[number % len(stored)]) for number in range(WARM_UP, WARM_UP + updates)]
    return Row(size, system, sum(one[1] for one in work), sum(one[0] for one in work), updates, seconds)


def checks(size: str, batch_tokens: int) -> Iterator[str]:
    """Yield what has to be known before any speed, a line each."""
    setup: dict[str, Any] = {"model": asdict(paper_model(size)), "device": default_device().type}
    stored = stored_batches(size, batch_tokens)
    done = our_updates(setup, stored)
    list(islice(done, WARM_UP))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            torch.cuda.set_sync_debug_mode("warn")
        try:
            list(islice(done, 3))
        finally:
            if torch.cuda.is_available():
                torch.cuda.set_sync_debug_mode("default")
    lines = sorted({f"{Path(one.filename).name}:{one.lineno}" for one in caught})
    yield f"3 updates wait in {len(lines)} lines {' '.join(lines)}".rstrip()
    losses = [[update.loss.item() for update in islice(our_updates(setup, stored), 20)] for _ in range(2)]
    yield f"two equal runs have {'equal' if losses[0] == losses[1] else 'different'} losses after 20 updates"


def systems(*, compiles: bool) -> list[str]:
    """List what can be measured here, the most telling first."""
    has_peers = find_spec("transformers") is not None
    return [
        *(name for name, options in OURS.items() if compiles or not options.get("compiled")),
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
    """Write a table in Markdown of the validations that have a BLEU."""
    lines = ["| minutes | update | BLEU |", "|---:|---:|---:|"]
    scored = [row for row in rows if "bleu" in row]
    return lines + [f"| {row['seconds'] / 60:.1f} | {row['step']:,} | {row['bleu']:.1f} |" for row in scored]


def paper_model(size: str) -> ModelConfig:
    """Return the model of a row of Table 3, with the paper's 37,000 tokens; or "tiny", to try the command."""
    if size == "tiny":
        return ModelConfig(vocab_size=50, d_model=8, d_ff=8, heads=2, encoder_layers=1, decoder_layers=1)
    return replace(Recipe.read(recipe_path(size)).model, vocab_size=37_000)


def default_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait() -> None:
    """Return when the device has done everything."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


HEADER = """
| model | system | target tokens/s | useful TFLOP/s | share of peak | hours to 100,000 updates |
|---|---|---:|---:|---:|---:|"""


def table_line(row: Row, *, peak: float) -> str:
    """Write a row in Markdown; the share is left out if the peak is not known."""
    useful, hours = row.flops / row.seconds, row.seconds / row.updates * PAPER_UPDATES / 3600
    share = f"{useful / peak:.0%}" if peak else "unknown"
    speed = f"{row.tokens / row.seconds:,.0f}"
    return f"| {row.size} | {row.system} | {speed} | {useful / 1e12:.1f} | {share} | {hours:.1f} |"


def print_decoding(size: str) -> None:
    """Print the speed of searches with a model of this size, and what differs."""
    print("\n| model | engine | sentences | beam | tokens/s |\n|---|---|---:|---:|---:|")
    length = 30 if torch.cuda.is_available() else 5
    found = list(measure_decoding(paper_model(size), default_device(), wait, length=length))
    for speed in found:
        if isinstance(speed, Speed):
            print(f"| {size} | {speed.engine} | {speed.sentences} | {speed.beam} | {speed.tokens_per_second:,.0f} |")
    print("\n".join(["", *(line for line in found if isinstance(line, str))]), flush=True)


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
    print(f"{card}, torch {torch.__version__}, {date.today()}, batches of {options.batch_tokens:,} tokens\n")
    for line in checks(options.sizes[0], options.batch_tokens):
        print(f"- {line}", flush=True)
    for size in options.sizes:
        print_decoding(size)
    print(HEADER)
    for size in options.sizes:
        for system in systems(compiles=not options.no_compile):
            row = measure(size, system, batch_tokens=options.batch_tokens, updates=options.updates)
            print(table_line(row, peak=peak_flops(card, options.peak)), flush=True)
    for recipe, folder in (("multi30k-en-de", options.captions), ("tatoeba-en-it", options.tatoeba)):
        if folder:
            print(train_for_minutes(recipe, folder, options.minutes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
