"""Time from the start of a process to its first translation, and the speed after that, beside CTranslate2.

    python benchmarks/first_answer.py [--rounds 3] [--lines 40] [--size 256|512]

Every measurement is a whole process that translates random lines of 18 tokens one by one, with beam 4, at most 25
tokens and one thread, ours with its default settings. All systems have the same random weights, with which each
position writes a token of its own: a repetitive translation would be searched for a second time. Python keeps the
bytecode of modules, as it does for an installed package. The first answer is measured from before a process is started,
steady speed by the median of the last lines. Processes run one after the other, the rounds of all systems in
alternation; numbers are medians of the rounds. It takes about three minutes on two cores.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

SIZES = {256: (8_000, 3), 512: (37_000, 6)}  # d_model → vocabulary, layers
BEAM, MAX_LENGTH, FIRST_CHARACTER = 4, 25, 0x20000
STEADY_LINES = 15


class Times(NamedTuple):
    """Seconds: until the first answer, and for each later line."""

    first: float
    line: float


def ours(folder: str, lines: list[str], precision: str) -> Iterator[float]:
    """Yield the time after each line."""
    from allyouneed import Translator

    translator = Translator.load(folder, precision=precision, beam=BEAM, max_length=MAX_LENGTH, length_ratio=9.0)
    for line in lines * 2:
        translator(line)
        yield time.time()


def ctranslate2(folder: str, lines: list[str], precision: str) -> Iterator[float]:
    import ctranslate2 as library

    translator = library.Translator(f"{folder}/ct2", compute_type=precision, inter_threads=1, intra_threads=1)
    for line in lines * 2:
        translator.translate_batch([list(line)], beam_size=BEAM, max_decoding_length=MAX_LENGTH)
        yield time.time()


SYSTEMS: dict[str, Callable[[str, list[str], str], Iterator[float]]] = {"ours": ours, "CTranslate2": ctranslate2}


def work(system: str, folder: str, precision: str, started: str) -> None:
    """Do the work of the measured process: print its `Times`."""
    lines = json.loads(Path(folder, "lines.json").read_text())
    ends = list(SYSTEMS[system](folder, lines, precision))
    last = [after - before for before, after in pairwise(ends)][-STEADY_LINES:]
    times = Times(first=ends[0] - float(started), line=statistics.median(last or [0.0]))
    print(json.dumps(times), flush=True)


def measure(system: str, folder: Path, precision: str, cache: Path) -> Times:
    command = [sys.executable, __file__, "--work", system, str(folder), precision]
    result = subprocess.run(
        [*command, str(time.time())], check=True,
        env={
            **os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": "",
        },
        stdout=subprocess.PIPE, text=True, timeout=600,
    )  # fmt: skip
    return Times(*json.loads(result.stdout))


def prepare(folder: Path, d_model: int, lines: int) -> None:
    """Make a bundle with random weights, the same weights for CTranslate2, and random lines."""
    import torch

    from allyouneed import Bundle, DecodeConfig, ModelConfig, Tokenizer, Transformer
    from allyouneed.apps.convert.ctranslate2 import write_ctranslate2

    torch.manual_seed(1)
    vocabulary, layers = SIZES[d_model]
    alphabet = [chr(FIRST_CHARACTER + i) for i in range(vocabulary - 3)]
    tokenizer = Tokenizer.characters(alphabet)
    config = ModelConfig(
        vocab_size=vocabulary, d_model=d_model, d_ff=4 * d_model, heads=d_model // 64,
        encoder_layers=layers, decoder_layers=layers, max_length=512,
        positions="learned",
    )  # fmt: skip
    model = Transformer(replace(config, pad_id=tokenizer.pad_id)).eval()
    with torch.no_grad():  # the token of each position
        model.target_position.encoding[: MAX_LENGTH + 1] = 100 * model.target_embedding.table[: MAX_LENGTH + 1]
        for block in model.decoder.layers:
            for part in (block.self_attention.output, block.cross_attention.output, block.feed_forward.outer):
                part.weight.mul_(0.1)
    bundle = Bundle(model, tokenizer, tokenizer, DecodeConfig())
    bundle.save(folder)
    (folder / "ct2").mkdir()
    write_ctranslate2(bundle, folder / "ct2", "float32")
    rng = random.Random(1)
    texts = ["".join(rng.choices(alphabet, k=18)) for _ in range(lines)]
    (folder / "lines.json").write_text(json.dumps(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=40, help="lines that a process translates at least twice")
    parser.add_argument("--size", type=int, choices=SIZES, default=256, help="d_model")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work)
        return
    if options.lines < STEADY_LINES:
        parser.error(f"--lines must be {STEADY_LINES} or more")
    with tempfile.TemporaryDirectory() as root:
        folder, warm = Path(root, "bundle"), Path(root, "cache")
        prepare(folder, options.size, options.lines)
        processes = {
            "ours, int8 (the default)": ("ours", "int8"),
            "ours, float32": ("ours", "float32"),
            "CTranslate2, int8": ("CTranslate2", "int8"),
            "CTranslate2, float32": ("CTranslate2", "float32"),
        }
        rows: dict[str, list[Times]] = {name: [] for name in processes}
        for _ in range(options.rounds):
            for name, (system, precision) in processes.items():
                rows[name].append(measure(system, folder, precision, warm))
    medians = {name: Times(*map(statistics.median, zip(*times, strict=True))) for name, times in rows.items()}
    peer = medians["CTranslate2, int8"]
    layers = SIZES[options.size][1]
    print(f"d {options.size}, {layers}+{layers}, beam {BEAM}, one line at a time, one thread; milliseconds\n")
    print("| | first answer | CTranslate2 int8 / it | each line | CTranslate2 int8 / it |")
    print("|---|---|---|---|---|")
    for name, times in medians.items():
        print(
            f"| {name} | {1000 * times.first:,.0f} | {peer.first / times.first:.2f} "
            f"| {1000 * times.line:.1f} | {peer.line / times.line:.2f} |"
        )


if __name__ == "__main__":
    main()
