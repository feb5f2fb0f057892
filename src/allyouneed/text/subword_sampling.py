"""Subword sampling: segment a word differently each time, which regularizes training.

BPE-dropout (Provilkov et al., 2020) skips merges at random. Unigram sampling (Kudo, 2018) draws a segmentation by its
probability. The libraries' random numbers cannot be seeded, so a resumed run could not repeat them. Here a segmentation
depends only on the seed, the word and how often the word was segmented before.
"""

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

VARIANTS = 64  # different segmentations of a word
CACHED = 200_000  # segmentations in memory

Merges = dict[tuple[str, str], int]


def segment_bpe(symbols: Sequence[str], merges: Merges, *, dropout: float, rng: random.Random) -> list[str]:
    """Merge neighbours by BPE, but skip each possible merge with probability `dropout` at every step.

    Each step tries the merges in the order in which they were learned, until one is not skipped. Skipped merges are
    tried again in the next step.
    """
    pieces = list(symbols)
    end = len(symbols)
    left, right = list(range(-1, end - 1)), list(range(1, end + 1))  # the neighbours of each piece
    candidates = [(merges[pair], i) for i, pair in enumerate(pairwise(pieces)) if pair in merges]
    heapify(candidates)
    skipped = []
    while candidates:
        rank, i = candidate = heappop(candidates)
        j = right[i]
        if j == end or merges.get((pieces[i], pieces[j])) != rank:
            continue  # one of the two pieces was merged with another
        if rng.random() < dropout:
            skipped.append(candidate)
            continue
        pieces[i] = pieces[i] + pieces[j]
        pieces[j] = ""
        right[i] = right[j]
        if right[j] < end:
            left[right[j]] = i
        for k in (left[i], i):
            if k >= 0 and right[k] < end and (rank := merges.get((pieces[k], pieces[right[k]]), -1)) >= 0:
                heappush(candidates, (rank, k))
        while skipped:
            heappush(candidates, skipped.pop())
    return [piece for piece in pieces if piece]


def segment_unigram(
    word: str, scores: dict[str, float], *, temperature: float, rng: random.Random, unknown: float
) -> list[str]:
    """Sample a segmentation of `word` with a probability proportional to P(segmentation)^`temperature`.

    `scores` are the log-probabilities of subwords. Any other character has the score `unknown`.
    """
    longest = max(map(len, scores), default=1)
    # total[i] is the log of the summed weight of all segmentations of the first i characters.
    total = [0.0, *[-math.inf] * len(word)]
    ways: list[list[tuple[float, int]]] = [[] for _ in total]
    for end in range(1, len(word) + 1):
        for begin in range(max(0, end - longest), end):
            score = scores.get(word[begin:end], unknown if end - begin == 1 else None)
            if score is not None:
                ways[end].append((total[begin] + temperature * score, begin))
        most = max(weight for weight, _ in ways[end])
        total[end] = most + math.log(sum(math.exp(weight - most) for weight, _ in ways[end]))
    subwords = []
    end = len(word)
    while end:
        weights = [math.exp(weight - total[end]) for weight, _ in ways[end]]
        begin = rng.choices([begin for _, begin in ways[end]], weights)[0]
        subwords.append(word[begin:end])
        end = begin
    return subwords[::-1]


class SubwordSampler:
    """Segments texts into a tokenizer's subwords at random.

    `backend` is the tokenizer's object in the tokenizers library, and `table` the JSON that it is saved as.
    """

    def __init__(self, backend: Any, table: dict[str, Any], *, strength: float, seed: int) -> None:
        self._backend = backend
        self._strength = strength
        self._seed = seed
        model = table["model"]
        self._word_end = model.get("end_of_word_suffix") or ""
        self._unigram = model["type"] == "Unigram"
        self._scores = dict(model["vocab"]) if self._unigram else {}
        self._lowest = min(self._scores.values(), default=0.0)
        self._merges = {tuple(pair): rank for rank, pair in enumerate(model.get("merges", []))}
        self._cached_word = lru_cache(CACHED)(self._segment_word)

    def segment(self, text: str, *, number: int) -> list[str]:
        """Segment a text into subwords. The same `number` gives the same segmentation."""
        rng = random.Random(f"{self._seed} {number}")
        if self._backend.normalizer:
            text = self._backend.normalizer.normalize_str(text)
        words = self._backend.pre_tokenizer.pre_tokenize_str(text)
        return [subword for word, _ in words for subword in self._cached_word(word, rng.randrange(VARIANTS))]

    def _segment_word(self, word: str, variant: int) -> list[str]:
        rng = random.Random(f"{self._seed} {variant} {word}")
        if self._unigram:
            return segment_unigram(word, self._scores, temperature=self._strength, rng=rng, unknown=self._lowest)
        symbols = [*word[:-1], word[-1] + self._word_end]
        return segment_bpe(symbols, self._merges, dropout=self._strength, rng=rng)
