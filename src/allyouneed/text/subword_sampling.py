"""Segmentations by chance, so that a model meets a word in several spellings: a regulariser of training.

BPE-dropout (Provilkov et al., 2020) leaves out some merges of a word; unigram sampling (Kudo, 2018) draws
its pieces by their probability. The libraries draw from random numbers that cannot be set, so a run that
stopped could not go on with the same; here a segmentation follows from the seed, the word and a number.
"""

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

VARIANTS = 64  # segmentations of a word that are drawn from
REMEMBERED = 200_000  # segmentations in memory

Merges = dict[tuple[str, str], int]


def segment_bpe(symbols: Sequence[str], merges: Merges, *, dropout: float, rng: random.Random) -> list[str]:
    """Merge neighbours, the earliest learned first; at every step each merge is left out with probability `dropout`."""
    symbols = list(symbols)
    while True:
        open_ones = [
            (merges[pair], place)
            for place, pair in enumerate(pairwise(symbols))
            if pair in merges and rng.random() >= dropout
        ]
        if not open_ones:
            return symbols
        _, place = min(open_ones)
        symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]


def segment_unigram(
    word: str, scores: dict[str, float], *, temperature: float, rng: random.Random, unknown: float
) -> list[str]:
    """Draw pieces that spell `word`, a whole segmentation with its probability to the power of `temperature`.

    `scores` are log-probabilities; a character that is no piece stands alone, with the score `unknown`.
    """
    longest = max(map(len, scores), default=1)
    # total[i] is the log of the summed weight of all ways to spell the first i characters.
    total = [0.0, *[-math.inf] * len(word)]
    ways: list[list[tuple[float, int]]] = [[] for _ in total]
    for end in range(1, len(word) + 1):
        for begin in range(max(0, end - longest), end):
            score = scores.get(word[begin:end], unknown if end - begin == 1 else None)
            if score is not None:
                ways[end].append((total[begin] + temperature * score, begin))
        most = max(weight for weight, _ in ways[end])
        total[end] = most + math.log(sum(math.exp(weight - most) for weight, _ in ways[end]))
    pieces, end = [], len(word)
    while end:
        weights = [math.exp(weight - total[end]) for weight, _ in ways[end]]
        begin = rng.choices([place for _, place in ways[end]], weights)[0]
        pieces.append(word[begin:end])
        end = begin
    return pieces[::-1]


class Segmenter:
    """Spells texts by chance in the pieces of a tokenizer, given as the library's own and the JSON it saves."""

    def __init__(self, backend: Any, table: dict[str, Any], *, strength: float, seed: int) -> None:
        self._backend, self._strength, self._seed = backend, strength, seed
        model = table["model"]
        self._word_end = model.get("end_of_word_suffix") or ""
        self._unigram = model["type"] == "Unigram"
        self._scores = dict(model["vocab"]) if self._unigram else {}
        self._lowest = min(self._scores.values(), default=0.0)
        self._merges = {tuple(pair): rank for rank, pair in enumerate(model.get("merges", []))}
        self.pieces_of = lru_cache(REMEMBERED)(self._pieces_of)

    def pieces(self, text: str, *, number: int) -> list[str]:
        """The pieces of a text; the same for the same `number`."""
        rng = random.Random(f"{self._seed} {number}")
        if self._backend.normalizer:
            text = self._backend.normalizer.normalize_str(text)
        words = self._backend.pre_tokenizer.pre_tokenize_str(text)
        return [piece for word, _ in words for piece in self.pieces_of(word, rng.randrange(VARIANTS))]

    def _pieces_of(self, word: str, variant: int) -> list[str]:
        rng = random.Random(f"{self._seed} {variant} {word}")
        if self._unigram:
            return segment_unigram(word, self._scores, temperature=self._strength, rng=rng, unknown=self._lowest)
        symbols = [*word[:-1], word[-1] + self._word_end]
        return segment_bpe(symbols, self._merges, dropout=self._strength, rng=rng)
