"""The pairs of a run, as ids, and their vocabulary."""

import hashlib
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path

import numpy as np

from ..bundle import Bundle
from ..config import DataConfig, DecodeConfig, Recipe
from ..data.store import EncodedPairs, encode_pairs
from ..errors import ConfigError, DataError, InputError
from ..nn import Transformer
from ..text.corpus import Pair, read_lines, read_pairs
from ..text.spans import CopyHabits
from ..text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Material:
    """What a run learns from. `held_out` are the validation pairs as text, those that `valid` has as ids."""

    tokenizer: Tokenizer
    train: EncodedPairs
    valid: EncodedPairs | None
    held_out: list[Pair]
    copies: CopyHabits

    def bundle(self, model: Transformer, decode: DecodeConfig, *, card: str = "") -> Bundle:
        """A model of this vocabulary with what it has to know of these pairs."""
        longest_source = int(np.quantile(self.train.source.lengths, 0.999))
        return Bundle(model, self.tokenizer, decode, card, self.copies, longest_source)

    def some_held_out(self, count: int) -> list[Pair]:
        """At most so many validation pairs, from all over; always the same."""
        apart = max(1, ceil(len(self.held_out) / max(1, count)))
        return self.held_out[::apart][:count]

    def about(self) -> str:
        """Its sizes in a line."""
        parts = [f"{len(self.train):,} pairs to train on"]
        if self.train.dropped:
            parts.append(f"{self.train.dropped:,} dropped as empty or too long")
        if self.valid is not None:
            parts.append(f"{len(self.valid):,} to validate")
        return ", ".join([*parts, f"vocabulary of {len(self.tokenizer):,}"])

    def identity(self) -> dict[str, object]:
        """What tells it from any other: sizes, which a person can read, and a fingerprint of each part."""
        known: dict[str, object] = {}
        for name, pairs in (("train", self.train), ("valid", self.valid)):
            known[f"data.{name}'s number of pairs"] = 0 if pairs is None else len(pairs)
            known[f"data.{name}'s fingerprint"] = "" if pairs is None else _fingerprint(pairs)
        return known


def read_material(recipe: Recipe, *, tokenizer: Tokenizer | None) -> Material:
    """The pairs a recipe names; `tokenizer` is the vocabulary if there is one already."""
    pairs = _read("train", recipe.data, recipe.data.limit, recipe.train.seed)
    held_out = _read("valid", recipe.data, recipe.data.valid_limit, recipe.train.seed)
    tokenizer = tokenizer or learn_tokenizer(recipe.data, pairs)
    encoded, copies = _encode("train", recipe, pairs, tokenizer), CopyHabits.of(pairs)
    valid = _encode("valid", recipe, held_out, tokenizer) if held_out else None
    return Material(tokenizer, encoded, valid, _usable(held_out, tokenizer, recipe.model.max_length), copies)


def learn_tokenizer(data: DataConfig, pairs: list[Pair]) -> Tokenizer:
    """The vocabulary that `data` asks for, learned from both sides of the training pairs."""
    if data.vocabulary == "characters":
        return Tokenizer.characters(data.alphabet or sorted(set(chain.from_iterable(chain.from_iterable(pairs)))))
    if data.vocabulary == "codes":
        return Tokenizer.of_codes(read_lines(Path(data.folder, data.codes)), chain.from_iterable(pairs))
    return Tokenizer.learn_bpe(chain.from_iterable(pairs), vocab_size=data.vocab_size)


def _read(part: str, data: DataConfig, limit: int, seed: int) -> list[Pair]:
    where = getattr(data, part)
    if not where:
        if part == "train":
            raise ConfigError("data.train is missing; name two aligned files, [source, target]")
        return []
    return read_pairs(where, folder=data.folder, limit=limit, seed=seed)


def _encode(part: str, recipe: Recipe, pairs: list[Pair], tokenizer: Tokenizer) -> EncodedPairs:
    try:
        encoded = encode_pairs(pairs, tokenizer, max_length=recipe.model.max_length)
    except InputError as error:
        raise DataError(f"data.{part}, pair {error.line}: {error}") from error
    if not len(encoded):
        raise DataError(
            f"data.{part} has no pair to use: {len(pairs)} read, {encoded.dropped} dropped as empty "
            f"or longer than model.max_length={recipe.model.max_length} tokens"
        )
    return encoded


def _fingerprint(pairs: EncodedPairs) -> str:
    digest = hashlib.sha256()
    for side in (pairs.source, pairs.target):
        digest.update(side.starts.tobytes())
        digest.update(side.ids.tobytes())
    return digest.hexdigest()[:16]


def _usable(pairs: list[Pair], tokenizer: Tokenizer, max_length: int) -> list[Pair]:
    full = [pair for pair in pairs if pair.source and pair.target]
    sources = tokenizer.encode_all([pair.source for pair in full])
    return [pair for pair, ids in zip(full, sources, strict=True) if len(ids) <= max_length]
