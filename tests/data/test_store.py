import numpy as np

from allyouneed.data.store import Side, encode_pairs
from allyouneed.text.corpus import Pair
from allyouneed.text.tokenizer import Tokenizer


def test_a_side_gives_its_sentences_back() -> None:
    sentences = [[1, 2, 3], [], [4]]
    side = Side.of(sentences)
    assert [side[i] for i in range(len(side))] == sentences
    np.testing.assert_array_equal(side.lengths, [3, 0, 1])


def test_pairs_with_an_empty_or_too_long_side_are_dropped_and_counted() -> None:
    pairs = [Pair("ab", "ba"), Pair("", "a"), Pair("a", ""), Pair("a", "aaaa"), Pair("b", "b")]
    encoded = encode_pairs(pairs, Tokenizer.characters("ab"), max_length=5)
    assert len(encoded) == 2
    assert encoded.dropped == 3
    assert encoded.source[0] == [2, 0, 1, 3]
    assert encoded.target[1] == [2, 1, 3]
