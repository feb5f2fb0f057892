from allyouneed.data.encode import encode_pairs
from allyouneed.data.pairs import Pair
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.vocabulary import Vocabulary


def test_pairs_with_an_empty_or_too_long_side_are_dropped() -> None:
    pairs = [Pair("ab", "ba"), Pair("", "a"), Pair("a", ""), Pair("a", "aaaa"), Pair("b", "b")]
    tokenizer = Tokenizer.characters("ab")
    encoded = encode_pairs(pairs, Vocabulary(tokenizer, tokenizer), max_length=5)
    assert len(encoded) == 2
    assert encoded.source[0] == [2, 0, 1, 3]
    assert encoded.target[1] == [2, 1, 3]
