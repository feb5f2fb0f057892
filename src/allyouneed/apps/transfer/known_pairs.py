"""Pairs that show what a model can do already: those it was trained on, or its own translations of given texts."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...bundle import Bundle
from ...config import Recipe
from ...data.clean import dedup_key
from ...data.pairs import Pair, stride
from ...data.prepared import PreparedData, open_prepared, stored_provenance
from ...data.readers import is_task, read_pairs
from ...errors import ConfigError
from ...evaluation.model_scores import greedy_translator

MAX_VALID, MAX_TEST = 200, 1_000  # pairs
HELD_OUT = 0.1  # share of the pairs for validation, and as many again for the test
MIN_TO_SPLIT, MIN_HELD_OUT = 40, 8
VARIED = 30_000  # training pairs to draw from: fewer would be repeated so often that the model overfits to them


class Parts(NamedTuple):
    """Pairs to train on, to validate with and to test with."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]

    @property
    def is_split(self) -> bool:
        """Whether validation and test pairs are others than the training pairs."""
        return self.train != self.test


class KnownPairs(NamedTuple):
    """`are_outputs`: the targets are translations by the model itself. `origin` says where the pairs come from."""

    parts: Parts
    origin: str
    are_outputs: bool


def find_known_pairs(folder: Path, bundle: Bundle, sources: Sequence[str], *, count: int, seed: int) -> KnownPairs:
    """Pairs that show what a model knows: at least `count` to train on, if there are so many, and held-out pairs.

    They are its own translations of `sources`; without any, the pairs of its run, which are in `folder`/data; without
    these, its translations of the probes in the bundle. Refuses a bundle that has neither.
    """
    if not sources and stored_provenance(folder / "data"):
        return KnownPairs(
            _pairs_of_run(folder, count=max(count, VARIED), seed=seed), f"the pairs of {folder}/data", False
        )
    texts = list(dict.fromkeys(map(bundle.normalization, sources or bundle.probes)))[: count + MAX_VALID + MAX_TEST]
    if not any(texts):
        raise ConfigError(
            f"{folder} has neither the pairs that it was trained on nor probes, so that what it knows cannot be "
            "kept; name texts of the kind that it translates with --sources"
        )
    outputs = greedy_translator(bundle).translate(texts)
    pairs = [Pair(text, output) for text, output in zip(texts, outputs, strict=True) if output]
    origin = f"its own translations of {len(texts):,} {'texts' if sources else 'probes'}"
    return KnownPairs(split(pairs, seed=seed), origin, True)


def split(pairs: Sequence[Pair], *, seed: int) -> Parts:
    """A tenth of the pairs to validate with, a tenth to test with, the rest to train on.

    Pairs with the same source, apart from case and spaces, are in one part. Of fewer than 40 pairs none is held out:
    all three parts are the same.
    """
    keys = sorted({dedup_key(pair.source) for pair in pairs})
    if len(keys) < MIN_TO_SPLIT:
        return Parts(list(pairs), list(pairs), list(pairs))
    random.Random(seed).shuffle(keys)
    size = max(MIN_HELD_OUT, int(HELD_OUT * len(keys)))
    valid, test = set(keys[: min(size, MAX_VALID)]), set(keys[-min(size, MAX_TEST) :])
    parts = Parts([], [], [])
    for pair in pairs:
        key = dedup_key(pair.source)
        (parts.valid if key in valid else parts.test if key in test else parts.train).append(pair)
    return parts


def _pairs_of_run(folder: Path, *, count: int, seed: int) -> Parts:
    recipe = Recipe.read(folder / "recipe.toml")
    data = open_prepared(folder / "data", recipe.data, max_length=recipe.model.max_length)
    train = _training_pairs(data, count=count, seed=seed)
    test = list(data.test_pairs)
    for corpus in recipe.data.corpora():
        if is_task(corpus.test):
            test += read_pairs(corpus.test, limit=MAX_TEST, seed=recipe.data.seed)
    parts = split(train, seed=seed)
    held_out = _spaced(data.valid_pairs, MAX_VALID), _spaced(test or data.valid_pairs, MAX_TEST)
    return Parts(train, *held_out) if data.valid_pairs else Parts(parts.train, parts.valid, test or parts.test)


def _training_pairs(data: PreparedData, *, count: int, seed: int) -> list[Pair]:
    """Training pairs that ids spell: without those that have unknown tokens."""
    total = len(data.train)
    indices = sorted(random.Random(seed).sample(range(total), min(count, total)))
    sides = []
    for side, tokenizer in ((data.train.source, data.vocabulary.source), (data.train.target, data.vocabulary.target)):
        ids = [side[i] for i in indices]
        texts = tokenizer.decode_all(ids)
        sides.append([text if tokenizer.unk_id not in row else "" for text, row in zip(texts, ids, strict=True)])
    return [Pair(source, target) for source, target in zip(*sides, strict=True) if source and target]


def _spaced(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """At most `count` of the pairs, evenly spaced."""
    return list(pairs[:: stride(len(pairs), count)])
