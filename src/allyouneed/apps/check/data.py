"""Checks of a bundle's data: its baseline translations, its vocabulary and its held-out pairs."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from ...bundle import Bundle
from ...config import DataConfig, Recipe
from ...data.clean import read_part
from ...data.filter import select_pairs
from ...data.pairs import Pair
from ...data.readers import Where, is_task, local_paths, read_pairs
from ...data.report import DataReport
from ...errors import BundleError, InputError, refused
from ...machine.files import parse_json, read_whole, to_json, write_whole
from ...text.tokenizer import Tokenizer
from ...translator import Translator
from .model import CheckError, named_check

BASELINE = "baseline.json"
MAX_TEXTS = 100


def save_baseline(bundle: Bundle, folder: Path, texts: Sequence[str]) -> int:
    """Store the translations of at most 100 texts in the bundle, for `matches_baseline`. Returns their number."""
    texts = [text for text in dict.fromkeys(texts) if text][:MAX_TEXTS]
    if not texts:
        raise InputError("the baseline needs a text to translate: every line is empty")
    translations = Translator(bundle).translate(texts)
    pairs = [{"source": text, "target": target} for text, target in zip(texts, translations, strict=True)]
    write_whole(folder / BASELINE, to_json(pairs, indent=1) + "\n")
    return len(pairs)


@named_check("baseline")
def matches_baseline(bundle: Bundle, folder: Path) -> str:
    """Check that the model still gives the translations that `save_baseline` stored."""
    path = folder / BASELINE
    if not path.exists():
        raise CheckError("no baseline is stored; --save-baseline FILE stores one", passed=None)
    what, remedy = f"{path} is not a list of translations", "write it again with --save-baseline"
    with refused(BundleError, what, OSError, ValueError, TypeError, KeyError, remedy=remedy):
        pairs = [(pair["source"], pair["target"]) for pair in parse_json(read_whole(path))]
    translations = Translator(bundle).translate([source for source, _ in pairs])
    changed = [(source, old, new) for (source, old), new in zip(pairs, translations, strict=True) if old != new]
    if changed:
        source, old, new = changed[0]
        raise CheckError(
            f"{len(changed)} of {len(pairs)} translations changed; {source!r} was {old!r}, is now {new!r}."
        )
    return f"{len(pairs)} translations equal the baseline"


@named_check("text")
def text_round_trips(sides: Sequence[tuple[Tokenizer, Sequence[str]]]) -> str:
    """Check that text → ids → text returns the same text, for sentences of the data and for random tokens.

    Texts with parts outside the vocabulary are skipped and counted.
    """
    rng = torch.Generator().manual_seed(1)
    count = unknown = 0
    for tokenizer, texts in sides:
        ids = torch.randint(len(tokenizer), (50, 8), generator=rng).tolist()
        made_up = [text for text in (tokenizer.decode(row).strip() for row in ids) if text]
        if tokenizer.symbols is not None:  # SentencePiece reads several spaces as one
            made_up = [re.sub(" +", " ", text) for text in made_up]
        for text in [*texts, *made_up]:
            known = _known_ids(tokenizer, text)
            back = text if known is None else tokenizer.decode(known)
            if back != text:
                words = f"{text!r} is {back!r} after encoding and decoding: the tokenizer loses text."
                raise CheckError(words)
            count, unknown = count + (known is not None), unknown + (known is None)
    if unknown and not count:
        raise CheckError(f"all {unknown:,} texts have a part outside the vocabulary")
    left_out = f"; {unknown:,} have a part outside the vocabulary" if unknown else ""
    return f"{count:,} texts are the same after encoding and decoding{left_out}"


def _known_ids(tokenizer: Tokenizer, text: str) -> list[int] | None:
    """Encode a text; return None if a part of it is outside the vocabulary."""
    try:
        ids = tokenizer.encode(text)
    except InputError:
        return None
    return None if tokenizer.unk_id in ids else ids


MAX_OVERLAP = 0.01  # share of the held-out pairs


def load_pairs(recipe: Recipe | None) -> tuple[list[Pair], list[Pair]]:
    """Load the training and held-out pairs of a recipe, as training selects them; [] if a file is missing.

    All corpora are read, and held-out shares are drawn as in training. Nothing is downloaded.
    """
    if recipe is None or not _is_local(recipe.data):
        return [], []
    with tempfile.TemporaryDirectory() as folder:
        train, valid, test = (
            read_part(part, recipe.data, recipe.clean, Path(folder), DataReport())
            for part in ("train", "valid", "test")
        )
        chosen = select_pairs(recipe.data, recipe.clean, train, valid, test, DataReport())
        return list(train.texts(chosen.train)), [*chosen.valid, *chosen.test, *_tests_of_tasks(recipe.data)]


@named_check("overlap")
def no_overlap(train: Sequence[Pair], held_out: Sequence[Pair]) -> str:
    """Check that at most 1 % of the held-out pairs are training pairs."""
    if not train or not held_out:
        raise CheckError("the data is not here" if not train else "no pairs are held out", passed=None)
    trained_on = set(train)
    seen = [pair for pair in held_out if pair in trained_on]
    share = f"{len(seen):,} of {len(held_out):,} held-out pairs ({100 * len(seen) / len(held_out):.2f} %)"
    if len(seen) > MAX_OVERLAP * len(held_out):
        raise CheckError(f"{share} are training pairs, such as {seen[0].source!r}: scores on them are too high.")
    return f"{share} are training pairs"


def _tests_of_tasks(data: DataConfig) -> Iterator[Pair]:
    """Yield the test pairs of generated tasks, which training does not read."""
    for corpus in data.corpora():
        if is_task(corpus.test):
            yield from read_pairs(corpus.test, limit=data.max_valid_samples, seed=data.seed)


def _is_local(data: DataConfig) -> bool:
    def is_local(where: Where) -> bool:
        files = local_paths(where, folder=data.data_dir)
        return is_task(where) or (bool(files) and all(file.is_file() for file in files))

    parts = [part for corpus in data.corpora() for part in (corpus.train, corpus.valid, corpus.test) if part]
    return bool(parts) and all(map(is_local, parts))
