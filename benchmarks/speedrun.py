"""Time to quality: greedy BLEU on Multi30K's raw test_2016 after some minutes of wall clock, vocabulary included.

    python benchmarks/speedrun.py FOLDER [--minutes 6 20 45] [--systems ours marian] [--seed 1] [SECTION.KEY=VALUE …]

FOLDER has Multi30K's raw files. Every budget is a run by itself, whose learning rate falls to zero at its end, from the
text to the trained model; translating the test set is not counted. "ours" is `allyouneed train` with the recipe
multi30k-en-de, with the settings at the end of the command; "marian" is Hugging Face's `MarianMTModel` of the same
sizes, batches and kind of vocabulary, trained by AdamW with `--peak`. Runs follow one another, on all cores. Lines are
printed as JSON, one a run. Needs `pip install transformers` for "marian".
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from allyouneed import Recipe, Translator, recipe_path
from allyouneed.data.prepare import prepare
from allyouneed.device import retain_freed_memory
from allyouneed.metrics import bleu

RECIPE = "multi30k-en-de"


def train_ours(folder: Path, output: Path, minutes: float, settings: Sequence[str]) -> list[str]:
    """Train with the command, in a process of its own; returns that command."""
    command = [
        "allyouneed", "train", RECIPE, "--auto", "--minutes", f"{minutes:g}", "--output", str(output),
        f"data.data_dir={folder}", *settings,
    ]  # fmt: skip
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=sys.stderr)
    return command


def translate_with_marian(
    folder: Path, scratch: Path, texts: list[str], *, minutes: float, peak: float, seed: int
) -> tuple[list[str], float]:
    """Train a Marian model on the pairs of the recipe and translate greedily; also the minutes until it was trained."""
    from marian import fit, make_marian, translate

    begin = time.monotonic()
    torch.manual_seed(seed)
    recipe = Recipe.read(recipe_path(RECIPE), [f"data.data_dir={folder}", f"train.seed={seed}"])
    prepared = prepare(recipe.data, recipe.clean, scratch / "data", max_length=recipe.model.max_length)
    tokenizer = prepared.vocabulary.source
    sizes = prepared.vocabulary.with_vocab_size(recipe.model)
    model = make_marian(sizes, tokenizer, min_positions=recipe.model.max_length)
    left = minutes - (time.monotonic() - begin) / 60
    fit(model, recipe.train, prepared.train, minutes=left, peak=peak, clock=time.monotonic)
    took = (time.monotonic() - begin) / 60
    return translate(model, tokenizer, texts, beam=1), took


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def curve(run: Path) -> list[dict[str, float]]:
    """Update, minutes and BLEU on validation pairs of every validation of one of our runs."""
    rows = (json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        {"step": row["step"], "minutes": round(row["seconds"] / 60, 2), "bleu": round(row["bleu"], 2)}
        for row in rows
        if "bleu" in row
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("settings", nargs="*", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--minutes", nargs="+", type=float, default=[6.0, 20.0, 45.0])
    parser.add_argument("--systems", nargs="+", choices=["ours", "marian"], default=["ours", "marian"])
    parser.add_argument("--peak", type=float, default=7e-4, help="peak learning rate of the Marian model")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    retain_freed_memory()
    sources, references = (lines(options.folder / f"test_2016_flickr.{side}.gz") for side in ("en", "de"))
    for minutes in options.minutes:
        for system in options.systems:
            with tempfile.TemporaryDirectory() as scratch:
                row: dict[str, object] = {"system": system, "minutes": minutes, "seed": options.seed}
                if system == "ours":
                    run, begin = Path(scratch, "run"), time.monotonic()
                    command = train_ours(
                        options.folder, run, minutes, [f"train.seed={options.seed}", *options.settings]
                    )
                    row |= {"took": round((time.monotonic() - begin) / 60, 2), "command": " ".join(command)}
                    outputs = Translator.load(run, beam=1).translate(sources)
                    row["curve"] = curve(run)
                else:
                    outputs, took = translate_with_marian(
                        options.folder, Path(scratch), sources, minutes=minutes, peak=options.peak, seed=options.seed
                    )
                    row |= {"took": round(took, 2), "peak": options.peak}
                score = bleu(outputs, references)
                row |= {"bleu": round(score.value, 2), "signature": score.signature, "cores": os.cpu_count()}
                print(json.dumps(row | {"date": time.strftime("%Y-%m-%d")}), flush=True)


if __name__ == "__main__":
    main()
