"""Which tokens of a vocabulary begin or end inside a word."""

import unicodedata

from ..decode import WordBoundaries
from ..text.tokenizer import Tokenizer

# Scripts that put no blanks between words: a phrase in them may touch its neighbours.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


def find_word_boundaries(tokenizer: Tokenizer) -> WordBoundaries:
    """The word boundaries of a vocabulary: special tokens neither begin nor end in a word."""
    special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.unk_id}
    pieces = enumerate(tokenizer.pieces(range(len(tokenizer))))
    words = [(i, piece) for i, piece in pieces if piece and i not in special]
    return WordBoundaries(
        starts_in_word=frozenset(i for i, piece in words if is_in_word(piece[0])),
        ends_in_word=frozenset(i for i, piece in words if is_in_word(piece[-1])),
    )


def is_in_word(character: str) -> bool:
    """Whether a character is a letter or digit of a script that puts blanks between words."""
    category = unicodedata.category(character)
    return category[0] in "LMN" and not unicodedata.name(character, "").startswith(_UNSPACED)
