"""What adapting a model to a new kind of pairs gains and loses, beside training on both kinds from the start.

    python benchmarks/adapt.py --data ../shared/data --updates 400 --adapt-updates 150

Three models of the same size are trained: on `--known` alone (base), on both kinds for as many updates as base and its
adaptation together (both), and base adapted to `--new`. Each corpus is a folder with train, valid and test of two
languages. Printed are BLEU of greedy search on both test sets, the processor time of each training, which depends less
on what else the machine does than wall-clock time, and the share of the gain of `both` that adapting reaches.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from allyouneed import Bundle, Draft, fit
from allyouneed.corpus.pair import Pair
from allyouneed.corpus.readers import read_pairs
from allyouneed.evaluation import evaluate_greedily
from allyouneed.transfer.adaptation import adapt_bundle


def processor_minutes() -> float:
    """The processor time of this process and its children so far."""
    times = os.times()
    return (times.user + times.system + times.children_user + times.children_system) / 60


def corpus(folder: Path, part: str, languages: str) -> tuple[str, str]:
    source, target = (str(folder / f"{part}.{language}.gz") for language in languages.split("-"))
    return source, target


def sample(folder: Path, languages: str, count: int) -> list[Pair]:
    """`count` training pairs of a corpus, drawn by a seed; 0: all."""
    return read_pairs(corpus(folder, "train", languages), limit=count, seed=1)


def write(path: Path, pairs: list[Pair]) -> str:
    path.write_text("".join(json.dumps(pair._asdict()) + "\n" for pair in pairs), encoding="utf-8")
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of both corpora")
    parser.add_argument("--known", default="tatoeba-en-it")
    parser.add_argument("--new", default="debian-en-it")
    parser.add_argument("--languages", default="en-it")
    parser.add_argument("--pairs", type=int, default=40_000, help="known training pairs; 0: all")
    parser.add_argument("--corrections", type=int, default=40_000, help="new training pairs; 0: all")
    parser.add_argument("--updates", type=int, default=400, help="of the base model")
    parser.add_argument("--adapt-updates", type=int, default=150)
    parser.add_argument("--mix", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=256, help="d_model")
    parser.add_argument("--folder", type=Path, help="where the models go, and are found again by another call")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    known, new = (options.data / name for name in (options.known, options.new))
    pairs = {
        known: sample(known, options.languages, options.pairs),
        new: sample(new, options.languages, options.corrections),
    }
    tests = {one: read_pairs(corpus(one, "test", options.languages)) for one in pairs}
    minutes: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Bundle]) -> Bundle:
        before = processor_minutes()
        result = work()
        minutes[name] = processor_minutes() - before
        return result

    def train(name: str, corpora: list[Path], updates: int) -> Bundle:
        tables = {
            "data": {
                "corpus": [
                    {
                        "train": write(folder / f"{one.name}.jsonl", pairs[one]),
                        "valid": corpus(one, "valid", options.languages),
                    }
                    for one in corpora
                ],
                "max_valid_samples": 100,
                "vocab_size": 4_000,
            },
            "model": {
                "d_model": options.size, "d_ff": 4 * options.size, "heads": 4, "encoder_layers": 3,
                "decoder_layers": 3, "dropout": 0.1,
            },
            "train": {
                "steps": updates, "validate_every": updates, "batch_tokens": 2_048, "threads": 1, "tensorboard": False,
            },
        }  # fmt: skip
        return timed(name, lambda: fit(Draft.from_tables(tables), folder / name, resume=True))

    models = {"base": train("base", [known], options.updates)}
    models["both"] = train("both", [known, new], options.updates + options.adapt_updates)
    settings = {
        "train": {
            "steps": options.adapt_updates, "validate_every": -(-options.adapt_updates // 5), "batch_tokens": 2_048,
            "threads": 1, "tensorboard": False,
        },
    }  # fmt: skip
    models["adapted"] = timed(
        "adapted",
        lambda: (
            adapt_bundle(
                folder / "base", pairs[new], folder / "adapted", mix=options.mix, settings=settings, resume=True
            ).bundle
        ),
    )
    print(f"{'':<10}{'minutes':>9}{known.name:>18}{new.name:>18}   (BLEU, greedy search)")
    scores = {}
    for name, model in models.items():
        scores[name] = [evaluate_greedily(model, tests[one]).scores["bleu"] for one in (known, new)]
        print(f"{name:<10}{minutes[name]:>9.2f}{scores[name][0]:>18.2f}{scores[name][1]:>18.2f}", flush=True)
    gains = [scores[name][1] - scores["base"][1] for name in ("adapted", "both")]
    print(f"adapting reaches {gains[0] / gains[1]:.0%} of the gain of training on both from the start,")
    print(f"and changes {known.name} by {scores['adapted'][0] - scores['base'][0]:+.2f} BLEU")


if __name__ == "__main__":
    main()
