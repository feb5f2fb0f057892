"""Which tokens of a vocabulary begin or end inside a word."""

from ..decode import WordBoundaries
from ..text.spans import is_in_word
from ..text.tokenizer import Tokenizer


def find_word_boundaries(tokenizer: Tokenizer) -> WordBoundaries:
    """The word boundaries of a vocabulary: special tokens neither begin nor end in a word."""
    special = {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id, tokenizer.unk_id}
    pieces = enumerate(tokenizer.pieces(range(len(tokenizer))))
    words = [(i, piece) for i, piece in pieces if piece and i not in special]
    return WordBoundaries(
        starts_in_word=frozenset(i for i, piece in words if is_in_word(piece[0])),
        ends_in_word=frozenset(i for i, piece in words if is_in_word(piece[-1])),
    )
