"""What adapting a model to a new kind of pairs gains and loses, beside training on both kinds from the start.

    python benchmarks/adapt.py --data ../shared/data --folder runs/adapting --models base,both,adapted
    python benchmarks/adapt.py --data ../shared/data --folder runs/adapting --models slower train.learning_rate=0.001

Models of the same size are trained: *base* on `--known` alone, *both* on both kinds for as many updates as base and an
adaptation together, and every other name is base adapted to `--new` by `allyouneed adapt` with the settings given.
Each corpus is a folder with train, valid and test of two languages. A run that was stopped is continued by the same
command, so that a training may be made in several turns.

Printed are all models in `--folder`: BLEU and chrF of greedy search on both test sets, and the processor time, which
depends less on what else the machine does than wall-clock time; then the share of the gain of *both* that adapting
reaches.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from allyouneed import Bundle, Draft, fit
from allyouneed.apps.transfer.adaptation import adapt_bundle
from allyouneed.config.settings import apply_overrides
from allyouneed.data.pairs import Pair
from allyouneed.data.readers import read_pairs
from allyouneed.errors import Interrupted
from allyouneed.evaluation import evaluate_greedily

RESULTS = "results.jsonl"  # a line a turn with its minutes, and a line a model with its scores


def processor_minutes() -> float:
    """Return the processor time of this process and its children so far."""
    times = os.times()
    return (times.user + times.system + times.children_user + times.children_system) / 60


def corpus(folder: Path, part: str, languages: str) -> tuple[str, str]:
    source, target = (str(folder / f"{part}.{language}.gz") for language in languages.split("-"))
    return source, target


def sample(folder: Path, languages: str, count: int) -> list[Pair]:
    """Draw `count` training pairs of a corpus by a seed; 0: all."""
    return read_pairs(corpus(folder, "train", languages), limit=count, seed=1)


def write(path: Path, pairs: list[Pair]) -> str:
    if not path.is_file():
        path.write_text("".join(json.dumps(pair._asdict()) + "\n" for pair in pairs), encoding="utf-8")
    return str(path)


def append(folder: Path, row: dict[str, object]) -> None:
    with (folder / RESULTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def print_table(folder: Path, known: str, new: str) -> None:
    """Print all models so far, and the results of adapting."""
    rows = [json.loads(line) for line in (folder / RESULTS).read_text(encoding="utf-8").splitlines()]
    scores = {row["model"]: row["scores"] for row in rows if "scores" in row}
    print(f"{'':<16}{'minutes':>9}{known:>18}{new:>18}   (BLEU, chrF, greedy search)")
    for name, (old, other) in scores.items():
        minutes = sum(row.get("minutes", 0.0) for row in rows if row["model"] == name)
        line = "".join(f"{one['bleu']:>11.2f},{one['chrf']:>6.2f}" for one in (old, other))
        gain = ""
        if name not in ("base", "both") and {"base", "both"} <= scores.keys():
            gains = [scores[one][1]["bleu"] - scores["base"][1]["bleu"] for one in (name, "both")]
            lost = old["bleu"] - scores["base"][0]["bleu"]
            gain = f"   {gains[0] / gains[1]:.0%} of the gain, {lost:+.2f} BLEU on {known}"
        print(f"{name:<16}{minutes:>9.2f}{line}{gain}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", help="of the adaptations, as train.learning_rate=0.001")
    parser.add_argument("--data", type=Path, required=True, help="the folder of both corpora")
    parser.add_argument("--models", default="base,both,adapted", help="which to train now")
    parser.add_argument("--known", default="tatoeba-en-it")
    parser.add_argument("--new", default="debian-en-it")
    parser.add_argument("--languages", default="en-it")
    parser.add_argument("--pairs", type=int, default=100_000, help="known training pairs; 0: all")
    parser.add_argument("--corrections", type=int, default=40_000, help="new training pairs; 0: all")
    parser.add_argument("--updates", type=int, default=3_000, help="of the base model")
    parser.add_argument("--adapt-updates", type=int, default=1_000)
    parser.add_argument("--mix", type=float, default=3.0)
    parser.add_argument("--size", type=int, default=128, help="d_model")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=1_024)
    parser.add_argument("--vocabulary", type=int, default=4_000)
    parser.add_argument("--folder", type=Path, help="where the models go, and are found again by another call")
    options = parser.parse_intermixed_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    known, new = (options.data / name for name in (options.known, options.new))
    counts = {known: options.pairs, new: options.corrections}
    tests = [read_pairs(corpus(one, "test", options.languages)) for one in counts]
    always = {"batch_tokens": options.batch_tokens, "threads": 1, "workers": 1, "tensorboard": False}

    def train(name: str, corpora: list[Path], updates: int) -> Bundle:
        tables = {
            "data": {
                "corpus": [
                    {
                        "train": write(folder / f"{one.name}.jsonl", sample(one, options.languages, counts[one])),
                        "valid": corpus(one, "valid", options.languages),
                    }
                    for one in corpora
                ],
                "max_valid_samples": 100,
                "vocab_size": options.vocabulary,
            },
            "model": {
                "d_model": options.size, "d_ff": 4 * options.size, "heads": 4, "encoder_layers": options.layers,
                "decoder_layers": options.layers, "dropout": 0.1,
            },
            "train": {**always, "steps": updates, "validate_every": updates},
        }  # fmt: skip
        return fit(Draft.from_tables(tables), folder / name, resume=True)

    def adapt(name: str) -> Bundle:
        steps = options.adapt_updates
        settings = {"train": {**always, "steps": steps, "validate_every": -(-steps // 5)}}
        corrections = sample(new, options.languages, options.corrections)
        return adapt_bundle(
            folder / "base", corrections, folder / name, mix=options.mix, resume=True,
            settings=apply_overrides(settings, options.settings),
        ).bundle  # fmt: skip

    for name in options.models.split(","):
        before = processor_minutes()
        try:
            if name == "base":
                model = train(name, [known], options.updates)
            elif name == "both":
                model = train(name, [known, new], options.updates + options.adapt_updates)
            else:
                model = adapt(name)
        except Interrupted as stop:
            raise SystemExit(f"{name}: {stop}") from None
        finally:
            append(folder, {"model": name, "minutes": processor_minutes() - before})
        scores = [dict(evaluate_greedily(model, test).scores) for test in tests]
        append(folder, {"model": name, "scores": scores, "settings": options.settings})
        print_table(folder, known.name, new.name)


if __name__ == "__main__":
    main()
