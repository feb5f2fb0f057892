import numpy as np
import pytest

from allyouneed.data.store import Side, encode_pairs
from allyouneed.text.corpus import Pair
from allyouneed.text.tokenizer import Tokenizer


def test_a_side_gives_its_sentences_back() -> None:
    sentences = [[1, 2, 3], [], [4]]
    side = Side.of(sentences)
    assert [side[i] for i in range(len(side))] == sentences
    np.testing.assert_array_equal(side.lengths(np.array([2, 0, 1], np.int32)), [1, 3, 0])


def test_the_length_that_a_share_of_the_sentences_does_not_exceed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.data.store.AT_ONCE", 7)
    lengths = np.random.default_rng(0).integers(0, 30, 100)
    side = Side.of([[1] * length for length in lengths])
    assert side.length_at(1) == lengths.max()
    for share in (0.1, 0.5, 0.95):
        assert side.length_at(share) == np.quantile(lengths, share, method="inverted_cdf")


def test_pairs_with_an_empty_or_too_long_side_are_dropped_and_counted() -> None:
    pairs = [Pair("ab", "ba"), Pair("", "a"), Pair("a", ""), Pair("a", "aaaa"), Pair("b", "b")]
    encoded = encode_pairs(pairs, Tokenizer.characters("ab"), max_length=5)
    assert len(encoded) == 2
    assert encoded.dropped == 3
    assert encoded.source[0] == [2, 0, 1, 3]
    assert encoded.target[1] == [2, 1, 3]
