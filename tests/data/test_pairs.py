from pathlib import Path

import numpy as np
import pytest
import torch

from allyouneed.data.batch import epoch_of_batches, pad
from allyouneed.data.pairs import EncodedPairs, Pair, Pairs, Side, encode_pairs, writing_pairs
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.vocabulary import Vocabulary


def test_a_side_gives_its_sentences_back() -> None:
    sentences = [[1, 2, 3], [], [4]]
    side = Side.from_sentences(sentences)
    assert [side[i] for i in range(len(side))] == sentences
    np.testing.assert_array_equal(side.lengths(np.array([2, 0, 1], np.int32)), [1, 3, 0])


@pytest.mark.parametrize("chosen", [[], [0], [2, 0, 2], [0, 1, 2]])
def test_padded_rows_are_the_sentences_filled_up(chosen: list[int]) -> None:
    sentences = [[5, 6, 7], [], [8]]
    rows = Side.from_sentences(sentences).padded(np.array(chosen, np.int32), 9)
    assert rows.dtype == np.int64
    assert torch.equal(torch.from_numpy(rows), pad([sentences[i] for i in chosen], 9))


def test_the_length_that_a_share_of_the_sentences_does_not_exceed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.data.pairs.CHUNK_LENGTHS", 7)
    lengths = np.random.default_rng(0).integers(0, 30, 100)
    side = Side.from_sentences([[1] * length for length in lengths])
    assert side.length_quantile(1) == lengths.max()
    for share in (0.1, 0.5, 0.95):
        assert side.length_quantile(share) == np.quantile(lengths, share, method="inverted_cdf")


def test_the_tokens_of_an_epoch_count_a_pair_as_often_as_it_occurs() -> None:
    source, target = Side.from_sentences([[1, 2], [3], [4]]), Side.from_sentences([[5], [6], [7, 8, 9]])
    assert EncodedPairs(source, target).epoch_tokens() == 5
    assert EncodedPairs(source, target, weights=((2, 20.0), (3, 2.0))).epoch_tokens() == 20 * 3 + 2


def test_files_that_were_read_through_take_no_memory(tmp_path: Path) -> None:
    def mapped() -> float:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssFile")) / 2**10

    sentence = list(range(1000))
    side = Side.from_sentences([sentence] * 400)
    with writing_pairs(tmp_path, "train") as write:
        for _ in range(10):
            write(Pairs(side, side))
    mapped_pairs = Pairs.open(tmp_path, "train", "int32")
    pairs = EncodedPairs(mapped_pairs.source, mapped_pairs.target)
    before, most = mapped(), 0.0
    for epoch in range(2):
        for chosen in epoch_of_batches(pairs, batch_tokens=4000, seed=1, epoch=epoch):
            assert all(pairs.source[i] == pairs.target[i] == sentence for i in chosen[:1])
            most = max(most, mapped())
    assert most > before + 5  # MiB
    assert mapped() < before + 2


def test_pairs_with_an_empty_or_too_long_side_are_dropped() -> None:
    pairs = [Pair("ab", "ba"), Pair("", "a"), Pair("a", ""), Pair("a", "aaaa"), Pair("b", "b")]
    tokenizer = Tokenizer.characters("ab")
    encoded = encode_pairs(pairs, Vocabulary(tokenizer, tokenizer), max_length=5)
    assert len(encoded) == 2
    assert encoded.source[0] == [2, 0, 1, 3]
    assert encoded.target[1] == [2, 1, 3]
