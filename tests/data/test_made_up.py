"""Synthetic pairs: with other letters in the stem, with a letter unknown on both sides, or with an unknown tag."""

import numpy as np
import pytest

from allyouneed.config import DataConfig
from allyouneed.data.made_up import ENDING, MadeUpPairs
from allyouneed.data.pairs import Pair, Pairs, encode_pairs
from allyouneed.errors import ConfigError
from allyouneed.text.vocabulary import Vocabulary
from allyouneed.text.vocabulary_training import train_vocabulary

PAIRS = [
    Pair("walk V;PST", "walked"),
    Pair("go V;PST", "went"),
    Pair("1a1 V;PST", "1b1"),
    Pair("cancan V;PRS", "cancans"),
]


def learned(*, joint: bool = True) -> Vocabulary:
    sides = [[pair.source for pair in PAIRS] * 5, [pair.target for pair in PAIRS] * 5]
    data = DataConfig(vocabulary="characters", joint_vocabulary=joint)
    return train_vocabulary(data, lambda: iter(sides[0]), lambda: iter(sides[1]), pairs=len(PAIRS))


def read(vocabulary: Vocabulary, pairs: Pairs, row: int) -> tuple[str, str]:
    return vocabulary.source.decode(pairs.source[row]), vocabulary.target.decode(pairs.target[row])


@pytest.mark.parametrize("joint", [True, False])
def test_one_letter_of_both_sides_is_unknown_on_both(joint: bool) -> None:
    vocabulary = learned(joint=joint)
    pairs = encode_pairs(PAIRS, vocabulary, max_length=99)
    resample = MadeUpPairs(pairs, vocabulary, share=1, seed=1)
    seen = {read(vocabulary, resample(np.array([3, 0]), epoch), 1) for epoch in range(40)}
    hidden = {tuple(text.replace(letter, "<unk>") for text in PAIRS[0]) for letter in "walk"}
    assert {pair for pair in seen if "<unk>" in pair[1]} == hidden
    repeated = {read(vocabulary, resample(np.array([3]), epoch), 0)[1] for epoch in range(40)}
    assert "<unk>an<unk>ans" in repeated
    for row in (1, 2):  # no letter in common; digits and tags are none
        assert all(read(vocabulary, resample(np.array([row]), epoch), 0) == PAIRS[row] for epoch in range(20))


@pytest.mark.parametrize("joint", [True, False])
def test_a_stem_of_both_sides_has_the_same_other_letters_on_both_but_for_its_end(joint: bool) -> None:
    vocabulary = learned(joint=joint)
    pairs = encode_pairs(PAIRS, vocabulary, max_length=99)
    resample = MadeUpPairs(pairs, vocabulary, share=1, seed=1)
    seen = {read(vocabulary, resample(np.array([0]), epoch), 0) for epoch in range(200)}
    stems = {source.removesuffix(" V;PST") for source, _ in seen if "<unk>" not in source}
    assert {stem[-ENDING:] for stem in stems} == {"walk"[-ENDING:]}
    assert {(f"{stem} V;PST", f"{stem}ed") for stem in stems} == {pair for pair in seen if "<unk>" not in pair[0]}
    assert len(stems) > 20
    letters = {letter for pair in PAIRS for letter in pair.source.split()[0] if letter.isalpha()}
    assert {letter for stem in stems for letter in stem[:-ENDING]} <= letters


@pytest.mark.parametrize("joint", [True, False])
def test_a_word_whose_tag_is_unknown_is_copied(joint: bool) -> None:
    vocabulary = learned(joint=joint)
    pairs = encode_pairs(PAIRS, vocabulary, max_length=99)
    resample = MadeUpPairs(pairs, vocabulary, share=1, seed=1)
    for row, word, fields in (0, "walk", {" V", ";PST"}), (3, "cancan", {" V", ";PRS"}):
        seen = [resample(np.array([row]), epoch) for epoch in range(60)]
        copied = [pairs for pairs in seen if read(vocabulary, pairs, 0)[1] == word]
        assert all(vocabulary.source.unk_id in pairs.source[0] for pairs in copied)
        texts = [read(vocabulary, pairs, 0)[0] for pairs in copied]
        assert {field for text in texts for field in fields if field not in text} == fields


def test_the_share_of_the_pairs_is_that_of_the_setting_and_an_epoch_is_the_same_again() -> None:
    vocabulary = learned()
    pairs = encode_pairs(PAIRS, vocabulary, max_length=99)
    resample = MadeUpPairs(pairs, vocabulary, share=0.25, seed=1)
    epochs = [read(vocabulary, resample(np.array([0]), epoch), 0) for epoch in range(400)]
    assert 70 < sum(pair != PAIRS[0] for pair in epochs) < 130
    assert 30 < sum("<unk>" in source for source, _ in epochs) < 70
    assert all("<unk>" in source for source, target in epochs if "<unk>" in target)
    again = MadeUpPairs(pairs, vocabulary, share=0.25, seed=1)
    assert [read(vocabulary, again(np.array([3, 0]), epoch), 1) for epoch in range(400)] == epochs
    other = MadeUpPairs(pairs, vocabulary, share=0.25, seed=2)
    assert [read(vocabulary, other(np.array([0]), epoch), 0) for epoch in range(400)] != epochs


def test_it_needs_characters_on_both_sides_and_an_unknown_token() -> None:
    for settings in ({"target_vocabulary": "symbols"}, {"alphabet": "abc"}):
        with pytest.raises(ConfigError, match="made_up goes with"):
            DataConfig(vocabulary="characters", made_up=0.1, **settings)  # type: ignore[arg-type]
