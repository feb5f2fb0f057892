"""A small tokenizer of every kind."""

from collections.abc import Callable

from allyouneed.text.backends import (
    bpe_backend,
    character_backend,
    codes_backend,
    symbol_backend,
    unigram_backend,
    word_backend,
)
from allyouneed.text.tokenizer import Tokenizer

TEXTS = [
    "The house is small, isn't it?",
    "Das Haus – 25 m² – ist klein.",
    "é à 日本語 naïve",
    "a a a b",
    "  two  blanks ",
] * 3
# Characters without width, letters of scripts with joiners and without, a picture, a control character.
UNSEEN = "\x07\xad\u061c\u180e\u200b\u200c\u200d\u200e\u202a\u2060\u2066\ufeff\ufe0f"
UNSEEN += "ab \u0628\u0915\U00011083\U0001f469\u2695"
CODES = ["#version: 0.2", "t h", "th e</w>", "h o", "i s</w>", "a</w> x"]
VOCABULARIES: dict[str, Callable[[], Tokenizer]] = {
    "characters": lambda: Tokenizer.characters("abcdefghij "),
    "characters or unknown": lambda: Tokenizer.characters("abcdefghij ", unknown=True),
    "characters and tags": lambda: Tokenizer.characters("abcdefghijT ", tags=[";PL", " is", "it?"], unknown=True),
    "characters, taken apart": lambda: Tokenizer(
        character_backend("abcde e\u0301\u0300", unknown=True, decomposed=True)
    ),
    "symbols": lambda: Tokenizer(symbol_backend(TEXTS)),
    "bpe": lambda: Tokenizer(bpe_backend(TEXTS, vocab_size=300)),
    "words": lambda: Tokenizer(word_backend(TEXTS, vocab_size=30)),
    "unigram": lambda: Tokenizer(unigram_backend(TEXTS, vocab_size=330)),
    "codes": lambda: Tokenizer(codes_backend(CODES, TEXTS, all_symbols=False)),
}
