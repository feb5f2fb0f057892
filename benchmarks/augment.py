"""What more pairs made from the same data gain: distilled, back-translated, forward-translated and copied ones.

    python benchmarks/augment.py --data ../shared/data/tatoeba-en-it --languages en-it --pairs 3000

`--pairs` training pairs are all that is known; of `--monolingual` others only the target is used (for
forward-translation only the source). A teacher, twice as wide as the students, and a model of the other direction are
trained first. Then every student has the same sizes, updates, batches and seed, and so about the same processor time:

plain       the pairs
distilled   the pairs with the teacher's translations (beam search)
distilled+  the pairs, and with the teacher's translations
back        the pairs, and the monolingual targets with sources by the reverse model; sampled: with --sample
forward     the pairs, and monolingual sources with the teacher's translations
copied      the pairs, and the monolingual targets as their own sources

Synthetic corpora are never held out. Printed are BLEU and chrF of greedy search on the test set.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from allyouneed import Bundle, Draft, Recipe, Translator, fit
from allyouneed.corpus.pair import Pair
from allyouneed.corpus.readers import read_pairs
from allyouneed.evaluation import evaluate_greedily
from allyouneed.transfer.distillation import with_teacher


def processor_minutes() -> float:
    """The processor time of this process and its children so far."""
    times = os.times()
    return (times.user + times.system + times.children_user + times.children_system) / 60


def aligned(folder: Path, part: str, languages: str) -> list[Pair]:
    """The pairs of a part, whose two files are plain or compressed."""
    source, target = (next(folder.glob(f"{part}.{language}*")) for language in languages.split("-"))
    return read_pairs((str(source), str(target)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with train, valid and test of two languages")
    parser.add_argument("--languages", default="en-it")
    parser.add_argument("--test", default="test", help="the beginning of the names of the test files")
    parser.add_argument("--valid", default="valid", help="the same of the validation files")
    parser.add_argument("--pairs", type=int, default=3_000)
    parser.add_argument("--monolingual", type=int, default=3_000)
    parser.add_argument("--updates", type=int, default=300, help="of a student")
    parser.add_argument("--teacher-updates", type=int, default=400)
    parser.add_argument("--size", type=int, default=64, help="d_model of a student")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="plain,distilled,distilled+,back,sampled,forward,copied")
    parser.add_argument("--folder", type=Path, help="where the models go, and are found again by another call")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    rows = aligned(options.data, "train", options.languages)
    rows = rows[:: max(1, len(rows) // (options.pairs + options.monolingual))]
    known, unpaired = rows[0::2][: options.pairs], rows[1::2][: options.monolingual]
    valid, test = (aligned(options.data, name, options.languages)[:1_000] for name in (options.valid, options.test))

    def write(name: str, pairs: list[Pair]) -> str:
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(pair._asdict()) + "\n" for pair in pairs), encoding="utf-8")
        return str(path)

    def recipe(size: int, updates: int, corpora: list[dict[str, Any]], held_out: str) -> Recipe | Draft:
        return Draft.from_tables(
            {
                "data": {"corpus": corpora, "valid": held_out, "max_valid_samples": 100, "vocab_size": 2_000},
                "clean": {"drop_copies": 0},
                "model": {"d_model": size, "d_ff": 4 * size, "heads": 4, "encoder_layers": 2, "decoder_layers": 2},
                "train": {
                    "steps": updates, "validate_every": updates, "batch_tokens": 1_024, "threads": 1,
                    "tensorboard": False, "seed": options.seed,
                },
            }
        )  # fmt: skip

    def train(name: str, plan: Recipe | Draft) -> Bundle:
        before = processor_minutes()
        bundle = fit(plan, folder / name, resume=True)
        print(f"{name}: {processor_minutes() - before:.2f} minutes of processor time", flush=True)
        return bundle

    pairs, held_out = [{"train": write("pairs", known)}], write("valid", valid)
    swapped = [Pair(target, source) for source, target in known]
    turned = write("valid-swapped", [Pair(target, source) for source, target in valid])
    wide = 2 * options.size
    train("teacher", recipe(wide, options.teacher_updates, pairs, held_out))
    train("reverse", recipe(wide, options.teacher_updates, [{"train": write("swapped", swapped)}], turned))
    print(f"{'':<12}{'BLEU':>7}{'chrF':>7}")
    for name in ("teacher", *options.only.split(",")):
        if name != "teacher":
            corpora: list[dict[str, Any]] = [*pairs]
            run = folder / name
            mined: list[Pair] = []
            if name in ("back", "sampled"):
                reverse = Translator.load(folder / "reverse", sample=name == "sampled", beam=1)
                targets = [pair.target for pair in unpaired]
                mined = [Pair(*both) for both in zip(reverse.translate(targets), targets, strict=True)]
            elif name == "forward":
                sources = [pair.source for pair in unpaired]
                outputs = Translator.load(folder / "teacher").translate(sources)
                mined = [Pair(*both) for both in zip(sources, outputs, strict=True)]
            elif name == "copied":
                mined = [Pair(pair.target, pair.target) for pair in unpaired]
            if mined:
                corpora.append({"train": write(name, mined), "synthetic": True})
            plan = recipe(options.size, options.updates, corpora, held_out)
            if name == "distilled":
                plan = with_teacher(plan, [folder / "teacher"], run, resume=True)
            elif name == "distilled+":
                taught = with_teacher(plan, [folder / "teacher"], folder / "translations", resume=True)
                tables = (taught.preliminary if isinstance(taught, Draft) else taught).data.corpora()
                distilled = [{"train": corpus.train} for corpus in tables if corpus.train]
                plan = recipe(options.size, options.updates, [*pairs, *distilled], held_out)
            train(name, plan)
        scores = evaluate_greedily(Bundle.load(folder / name), test).scores
        print(f"{name:<12}{scores['bleu']:>7.2f}{scores['chrf']:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
