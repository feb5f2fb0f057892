"""Find pairs that a model has already learned: its training pairs, or its own translations of given texts.

Also check whether its vocabulary fits other pairs, by unknown tokens and words in many pieces.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...bundle import Bundle
from ...config import Recipe
from ...data.clean import dedup_key
from ...data.pairs import Pair, stride
from ...data.prepared import PreparedData
from ...data.prepared_files import open_prepared, stored_provenance
from ...data.readers import is_task, read_pairs
from ...errors import ConfigError, DataError, InputError, refused
from ...evaluation.model_scores import greedy_translator
from ...text.tokenizer import Tokenizer

MAX_VALID, MAX_TEST = 200, 1_000  # pairs
HELD_OUT = 0.1  # share of the pairs for validation, and as many again for the test
MIN_TO_SPLIT, MIN_HELD_OUT = 40, 8
VARIED = 30_000  # training pairs to draw from; fewer would be repeated so often that the model overfits to them


class Parts(NamedTuple):
    """Pairs for training, for validation and for the test."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]

    @property
    def is_split(self) -> bool:
        """True if validation and test pairs differ from the training pairs."""
        return self.train != self.test


class KnownPairs(NamedTuple):
    """Pairs that a model knows, and their `origin`.

    With `are_outputs`, the targets are the model's own translations.
    """

    parts: Parts
    origin: str
    are_outputs: bool


def find_known_pairs(folder: Path, bundle: Bundle, sources: Sequence[str], *, count: int, seed: int) -> KnownPairs:
    """Find pairs that show what a model knows: at least `count` training pairs, if possible, and held-out pairs.

    If there are `sources`, the pairs are the model's own translations of them. Otherwise they are the pairs of the
    model's run, in `folder`/data. If there are none, they are its translations of the sample sources in the bundle.
    Refuses a bundle that has none of these.
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
    return KnownPairs(split(pairs, seed=seed, smallest=3), origin, True)


def split(pairs: Sequence[Pair], *, seed: int, smallest: int = MIN_TO_SPLIT) -> Parts:
    """Split off a tenth of the pairs for validation and a tenth for the test; a fifth each, if there are few pairs.

    Pairs with the same source, ignoring case and spaces, are in the same part. With fewer sources than `smallest`,
    nothing is held out: all three parts are the same.
    """
    keys = sorted({dedup_key(pair.source) for pair in pairs})
    if len(keys) < smallest:
        return Parts(list(pairs), list(pairs), list(pairs))
    random.Random(seed).shuffle(keys)
    size = max(min(MIN_HELD_OUT, len(keys) // 5), int(HELD_OUT * len(keys)), 1)
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
    """Decode training pairs from their ids, without pairs that have unknown tokens."""
    total = len(data.train)
    indices = sorted(random.Random(seed).sample(range(total), min(count, total)))
    sides = []
    for side, tokenizer in ((data.train.source, data.vocabulary.source), (data.train.target, data.vocabulary.target)):
        ids = [side[i] for i in indices]
        texts = tokenizer.decode_all(ids)
        sides.append([text if tokenizer.unk_id not in row else "" for text, row in zip(texts, ids, strict=True)])
    return [Pair(source, target) for source, target in zip(*sides, strict=True) if source and target]


def _spaced(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """Take at most `count` of the pairs, evenly spaced."""
    return list(pairs[:: stride(len(pairs), count)])


MAX_UNKNOWN = 0.1  # share of the tokens of the corrections
STRETCHED = 2.0  # a vocabulary hardly fits if corrections need this many times the tokens per character of known pairs


def check_vocabulary(base: Bundle, pairs: Sequence[Pair], known: Sequence[Pair], name: Path) -> Iterator[str]:
    """Refuse corrections that the vocabulary cannot encode; yield warnings about corrections that it encodes poorly."""
    with refused(InputError, f"the vocabulary of {name} does not fit the corrections", InputError):
        unknown, stretch = _unknown_share(base, pairs), _tokens_a_character(base, pairs)
    if unknown > MAX_UNKNOWN:
        raise DataError(
            f"the vocabulary of {name} does not fit the corrections: {unknown:.1%} of their tokens are unknown to it, "
            f"more than {MAX_UNKNOWN:.0%}; train a model with a vocabulary for both kinds of pairs"
        )
    if unknown:
        yield f"{unknown:.2%} of the tokens of the corrections are unknown to the vocabulary"
    if known and (times := stretch / _tokens_a_character(base, known)) > STRETCHED:
        yield (
            f"the vocabulary hardly fits the corrections: a character takes {times:.1f} times the tokens that it takes "
            "in the pairs that the model knows"
        )


def count_tokens(base: Bundle, pairs: Sequence[Pair]) -> int:
    """Count the tokens on both sides of all pairs."""
    return sum(len(ids) for _, _, ids in _encoded(base, pairs))


def _encoded(base: Bundle, pairs: Sequence[Pair]) -> Iterator[tuple[Tokenizer, str, list[int]]]:
    for side, tokenizer in enumerate((base.source_tokenizer, base.target_tokenizer)):
        texts = [pair[side] for pair in pairs]
        for text, ids in zip(texts, tokenizer.encode_all(texts), strict=True):
            yield tokenizer, text, list(tokenizer.content(ids))


def _unknown_share(base: Bundle, pairs: Sequence[Pair]) -> float:
    counts = [
        (ids.count(-1 if tokenizer.unk_id is None else tokenizer.unk_id), len(ids))
        for tokenizer, _, ids in _encoded(base, pairs)
    ]
    return sum(unknown for unknown, _ in counts) / max(1, sum(count for _, count in counts))


def _tokens_a_character(base: Bundle, pairs: Sequence[Pair]) -> float:
    lengths = [(len(ids), len(text)) for _, text, ids in _encoded(base, pairs)]
    return sum(tokens for tokens, _ in lengths) / max(1, sum(characters for _, characters in lengths))
