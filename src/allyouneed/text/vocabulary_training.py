"""Learn a vocabulary from the texts of a corpus: its kind, its size, and whether the sides share it."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from tokenizers import Tokenizer as Backend

from ..config import DataConfig
from .backends import (
    bpe_backend,
    character_backend,
    codes_backend,
    symbol_backend,
    unigram_backend,
    word_backend,
)
from .lines import read_lines
from .tags import find_tags, without
from .tokenizer import Tokenizer
from .vocabulary import Vocabulary

# Vocabulary size by the largest number of pairs; a rule of thumb after the documentation of mozilla/translations.
VOCABULARY_SIZES = {5_000: 1_000, 20_000: 4_000, 500_000: 8_000, 1_000_000: 16_000}
MAX_VOCABULARY_SIZE = 32_000
WORDS_PER_SUBWORD = 4  # words are rarer than subwords
SPARED = 0.01  # share of the texts with unknown characters that decomposing must save, because it makes texts longer

# A function that yields the texts of a side from the start, in each call.
Texts = Callable[[], Iterator[str]]


def vocab_size(data: DataConfig, pairs: int, kind: str = "bpe") -> int:
    """Return the maximum size of a vocabulary of this kind: as set, or by the number of pairs."""
    if data.vocab_size:
        return data.vocab_size
    size = next((size for most, size in VOCABULARY_SIZES.items() if pairs <= most), MAX_VOCABULARY_SIZE)
    return size * WORDS_PER_SUBWORD if kind == "words" else size


def train_vocabulary(data: DataConfig, source: Texts, target: Texts, *, pairs: int) -> Vocabulary:
    """Learn the vocabulary that `data` describes from the texts of both sides. `pairs` is their number."""
    sides = ([source, target],) if data.is_joint else ([source], [target])
    backends = [_train(data, kind, texts, pairs) for kind, texts in zip(data.vocabularies(), sides, strict=False)]
    tokenizers = list(map(Tokenizer, backends))
    return Vocabulary(tokenizers[0], tokenizers[-1])


def _train(data: DataConfig, kind: str, sides: Sequence[Texts], pairs: int) -> Backend:
    texts = (text for side in sides for text in side())
    size = vocab_size(data, pairs, kind)
    codes = read_lines(Path(data.data_dir, data.bpe_codes)) if kind == "codes" else []
    match kind:
        case "characters" if data.alphabet:
            return character_backend(data.alphabet)
        case "characters":
            decomposed = any(map(is_to_be_decomposed, sides))
            form = decompose if decomposed else str
            tags = [tag for side in sides for tag in find_tags(map(form, side()))]
            alphabet = sorted(set(chain.from_iterable(without(tags, map(form, texts)))))
            return character_backend(alphabet, tags=tags, unknown=True, decomposed=decomposed)
        case "symbols":
            return symbol_backend(texts)
        case "codes":
            return codes_backend(codes, texts, all_symbols=data.subword_sampling > 0)
        case "words":
            return word_backend(texts, vocab_size=size)
        case "unigram":
            return unigram_backend(texts, vocab_size=size)
        case _:
            return bpe_backend(texts, vocab_size=size)


def is_to_be_decomposed(texts: Texts) -> bool:
    """Return True if decomposing characters leaves far fewer unknown characters in new texts, as with Hangul syllables.

    The share of new texts with an unknown character is about the share of known texts that have a character found in no
    other known text (Good, 1953). Decomposing must lower this share by `SPARED`.
    """
    number = 0
    counts = Counter[str]()
    parts = Counter[str]()
    for text in texts():
        number += 1
        counts.update(set(text))
        parts.update(set(decompose(text)))
    once, parts_once = (sum(count == 1 for count in some.values()) for some in (counts, parts))
    return once - parts_once > SPARED * number


def decompose(text: str) -> str:
    """Put a text into Unicode's normal form NFD."""
    return unicodedata.normalize("NFD", text)
