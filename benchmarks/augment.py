"""What more pairs made from the same data gain: distilled, back-translated, forward-translated and copied ones, terms.

    python benchmarks/augment.py --data ../shared/data/tatoeba-en-it --folder runs/augment --models plain,second,reverse
    python benchmarks/augment.py --data ../shared/data/tatoeba-en-it --folder runs/augment --models back,distilled

`--pairs` training pairs are all that is known; of `--others` further ones only the targets are used (only the sources
for forward-translation). All models have the same sizes, vocabulary size, updates, batches and seed, and so about the
same processor time:

plain           the pairs
second          the same with another seed, for ensembles
reverse         the pairs in the other direction, for back-translation
distilled       the sources with translations by plain (beam search)
ensemble        the sources with translations by plain and second together
distilled+      the pairs, and with translations by plain
small           the pairs, for a model of half the width
taught          the translations of distilled, for a model of half the width
back, sampled   the pairs, and the other targets with sources by reverse, by greedy search or drawn
back-half       the same as back, of which an epoch has half
elsewhere       the pairs, and targets of `--monolingual` with sources by reverse
forward         the pairs, and the other sources with translations by plain
copied          the pairs, and the other targets as their own sources
terms           the pairs, and a list of invented terms with their translations, each 20 times in an epoch
terms+copied    both

Printed are BLEU and chrF of greedy search on the test set, and how many terms of the list are translated as it says:
in sentences of the test set in which a term replaces the word `--slot`. Half of the terms stay as they are, as names of
products do. A folder keeps what was trained; a run that was stopped is continued by the same command.
"""

import argparse
import json
import os
import random
import re
import tempfile
from pathlib import Path
from typing import Any

from allyouneed import Bundle, Draft, Recipe, Translator, fit
from allyouneed.apps.transfer.distillation import with_teacher
from allyouneed.config.settings import apply_overrides
from allyouneed.data.pairs import Pair
from allyouneed.data.readers import read_pairs
from allyouneed.errors import Interrupted
from allyouneed.evaluation import evaluate_greedily
from allyouneed.text.lines import read_lines

RESULTS = "results.jsonl"  # a line a turn with its minutes, and a line a model with its scores
TERMS, TERM_SENTENCES = 60, 200
SYLLABLES = ("ba", "dro", "fi", "gul", "ka", "len", "mo", "nar", "pi", "que", "ros", "ta", "vel", "xi", "zor")


def processor_minutes() -> float:
    """Return the processor time of this process and its children so far."""
    times = os.times()
    return (times.user + times.system + times.children_user + times.children_system) / 60


def aligned(folder: Path, part: str, languages: str) -> list[Pair]:
    """Read the pairs of a part, whose two files are plain or compressed."""
    source, target = (next(folder.glob(f"{part}.{language}*")) for language in languages.split("-"))
    return read_pairs((str(source), str(target)))


def spaced(rows: list[Any], count: int) -> list[Any]:
    """Take `count` of the rows, evenly spaced."""
    return rows[:: max(1, len(rows) // count)][:count]


def invent_terms() -> list[Pair]:
    """Make terms of invented words, every second with a translation of its own."""
    rng = random.Random(1)
    words: list[str] = []
    while len(words) < 2 * TERMS:
        word = "".join(rng.sample(SYLLABLES, 3)).capitalize()
        if word not in words:
            words.append(word)
    return [
        Pair(word, other if n % 2 else word)
        for n, (word, other) in enumerate(zip(words[::2], words[1::2], strict=True))
    ]


def term_accuracy(bundle: Bundle, test: list[Pair], slot: str) -> float:
    """Return the share of sentences whose translation has the translation of their term."""
    word = re.compile(rf"\b{re.escape(slot)}\b")
    sentences = [pair.source for pair in test if len(word.findall(pair.source)) == 1][:TERM_SENTENCES]
    terms = [invent_terms()[n % TERMS] for n in range(len(sentences))]
    sources = [word.sub(term.source, sentence) for term, sentence in zip(terms, sentences, strict=True)]
    outputs = [row.strip() for row in Translator(bundle).using(beam=1, copy_untranslatable=False).translate(sources)]
    return sum(term.target in output for term, output in zip(terms, outputs, strict=True)) / max(1, len(sources))


def print_table(folder: Path) -> None:
    """Print all models so far."""
    rows = [json.loads(line) for line in (folder / RESULTS).read_text(encoding="utf-8").splitlines()]
    print(f"{'':<14}{'minutes':>9}{'BLEU':>7}{'chrF':>7}{'terms':>8}")
    for row in rows:
        if "scores" in row:
            minutes = sum(one.get("minutes", 0.0) for one in rows if one["model"] == row["model"])
            scores = row["scores"]
            print(
                f"{row['model']:<14}{minutes:>9.2f}{scores['bleu']:>7.2f}{scores['chrf']:>7.2f}{scores['terms']:>8.1%}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", help="of all models, as model.positions=rotary")
    parser.add_argument("--data", type=Path, required=True, help="a folder with train, valid and test of two languages")
    parser.add_argument("--models", default="plain,second,reverse,distilled,back", help="which to train now")
    parser.add_argument("--languages", default="en-it")
    parser.add_argument("--test", default="test", help="the beginning of the names of the test files")
    parser.add_argument("--valid", default="valid", help="the same of the validation files")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=10_000)
    parser.add_argument("--test-pairs", type=int, default=1_000, help="the first ones of the test set")
    parser.add_argument("--monolingual", type=Path, help="a text in the target language, one sentence a line")
    parser.add_argument("--slot", default="Tom", help="the word of test sentences that terms replace")
    parser.add_argument("--updates", type=int, default=800)
    parser.add_argument("--size", type=int, default=128, help="d_model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the models go, and are found again by another call")
    options = parser.parse_intermixed_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    rows = spaced(aligned(options.data, "train", options.languages), options.pairs + options.others)
    random.Random(1).shuffle(rows)
    known, others = rows[: options.pairs], rows[options.pairs :]
    valid, test = (
        aligned(options.data, name, options.languages)[: options.test_pairs] for name in (options.valid, options.test)
    )
    others_targets, others_sources = [pair.target for pair in others], [pair.source for pair in others]

    def write(name: str, pairs: list[Pair]) -> str:
        path = folder / f"{name}.jsonl"
        if not path.is_file():
            path.write_text("".join(json.dumps(pair._asdict()) + "\n" for pair in pairs), encoding="utf-8")
        return str(path)

    def recipe(
        corpora: list[dict[str, Any]], held_out: str, *, seed: int = options.seed, size: int = options.size
    ) -> Draft:
        tables = {
            "data": {"corpus": corpora, "valid": held_out, "max_valid_samples": 100, "vocab_size": 4_000},
            "clean": {"drop_copies": 0},
            "model": {
                "d_model": size, "d_ff": 4 * size, "heads": 4, "encoder_layers": 2,
                "decoder_layers": 2, "dropout": 0.1,
            },
            "train": {
                "steps": options.updates, "validate_every": options.updates, "batch_tokens": 1_024, "threads": 1,
                "workers": 1, "tensorboard": False, "seed": seed,
            },
        }  # fmt: skip
        return Draft.from_tables(apply_overrides(tables, options.settings))

    pairs, held_out = {"train": write("pairs", known)}, write("valid", valid)
    translations = {"train": str(folder / "distilled/pairs/distilled.0.jsonl")}
    turned = write("valid-turned", [Pair(target, source) for source, target in valid])

    def made(name: str) -> Recipe | Draft:
        """Return the recipe of a model, and make its pairs first."""
        if name == "second":
            return recipe([pairs], held_out, seed=options.seed + 1)
        if name in ("small", "taught"):
            return recipe([pairs if name == "small" else translations], held_out, size=options.size // 2)
        if name == "reverse":
            return recipe([{"train": write("turned", [Pair(target, source) for source, target in known])}], turned)
        if name in ("distilled", "ensemble", "distilled+"):
            teachers = [folder / teacher for teacher in (("plain", "second") if name == "ensemble" else ("plain",))]
            taught = with_teacher(recipe([pairs], held_out), teachers, folder / name, resume=True)
            if name != "distilled+":
                return taught
            return recipe([pairs, translations], held_out)
        corpora: list[dict[str, Any]] = [pairs]
        if name.startswith(("back", "sampled", "elsewhere")):
            drawn = name == "sampled"
            reverse = Translator.load(folder / "reverse", sample=drawn, beam=1)
            targets = others_targets
            if name == "elsewhere":
                targets = spaced([line.strip() for line in read_lines(options.monolingual)], options.others)
            kind = "back" if name == "back-half" else name
            file = folder / f"{kind}.jsonl"
            if not file.is_file():
                write(kind, [Pair(*both) for both in zip(reverse.translate(targets), targets, strict=True)])
            corpora.append({"train": str(file), "synthetic": True, "weight": 0.5 if name == "back-half" else 1.0})
        elif name == "forward":
            outputs = Translator.load(folder / "plain").translate(others_sources)
            mined = [Pair(*both) for both in zip(others_sources, outputs, strict=True)]
            corpora.append({"train": write(name, mined), "synthetic": True})
        if "terms" in name:
            corpora.append({"train": write("terms", invent_terms()), "synthetic": True, "weight": 20})
        if "copied" in name:
            copies = [Pair(target, target) for target in others_targets]
            corpora.append({"train": write("copied", copies), "synthetic": True})
        return recipe(corpora, held_out)

    for name in options.models.split(","):
        before = processor_minutes()
        try:
            bundle = fit(made(name), folder / name, resume=True)
        except Interrupted as stop:
            raise SystemExit(f"{name}: {stop}") from None
        finally:
            append = (folder / RESULTS).open("a", encoding="utf-8")
            append.write(json.dumps({"model": name, "minutes": processor_minutes() - before}) + "\n")
            append.close()
        judged = [Pair(target, source) for source, target in test] if name == "reverse" else test
        scores = {**evaluate_greedily(bundle, judged).scores, "terms": 0.0}
        if name != "reverse":
            scores["terms"] = term_accuracy(bundle, test, options.slot)
        with (folder / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"model": name, "scores": scores}) + "\n")
    print_table(folder)


if __name__ == "__main__":
    main()
