import random
from collections import Counter
from itertools import pairwise

import pytest

from allyouneed.text.backends import bpe_backend, unigram_backend
from allyouneed.text.subword_sampling import segment_bpe, segment_unigram
from allyouneed.text.tokenizer import Tokenizer

MERGES = {("a", "b"): 0, ("ab", "c"): 1, ("b", "c"): 2}
LINES = ["a brown dog runs", "two brown dogs ran", "ein brauner Hund rennt"] * 5


def test_bpe_without_dropout_is_bpe_and_with_all_dropped_is_letters() -> None:
    assert segment_bpe("abc", MERGES, dropout=0.0, rng=random.Random(1)) == ["abc"]
    assert segment_bpe("abc", MERGES, dropout=1.0, rng=random.Random(1)) == ["a", "b", "c"]


def test_bpe_dropout_spells_as_often_as_worked_out_by_hand() -> None:
    """Half of all merges left out: a+b is open in 1/2, and then ab+c in half of that; b+c alone in 1/4."""
    generator = random.Random(1)
    seen = Counter("|".join(segment_bpe("abc", MERGES, dropout=0.5, rng=generator)) for _ in range(8_000))
    assert {key: round(count / 8_000, 1) for key, count in seen.items()} == pytest.approx(
        {"abc": 0.25, "ab|c": 0.25, "a|bc": 0.25, "a|b|c": 0.25}, abs=0.06
    )


def plain_bpe(symbols: str, merges: dict[tuple[str, str], int], dropout: float, rng: random.Random) -> list[str]:
    """Apply the definition: the first of all merges that is not skipped, and all over again."""
    pieces = list(symbols)
    while True:
        candidates = sorted((merges[pair], i) for i, pair in enumerate(pairwise(pieces)) if pair in merges)
        for _, i in candidates:
            if rng.random() >= dropout:
                pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
                break
        else:
            return pieces


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 0.9])
def test_long_words_are_segmented_as_by_the_definition(dropout: float) -> None:
    rng = random.Random(1)
    merges: dict[tuple[str, str], int] = {}
    for rank in range(40):
        made = ["a", "b", *map("".join, merges)]
        merges.setdefault((rng.choice(made), rng.choice(made)), rank)
    for length in (0, 1, 2, 30, 200):
        word = "".join(rng.choices("abc", (5, 5, 1), k=length))
        pieces = segment_bpe(word, merges, dropout=dropout, rng=random.Random(length))
        assert pieces == plain_bpe(word, merges, dropout, random.Random(length))
        assert "".join(pieces) == word


def test_unigram_sampling_draws_by_probability() -> None:
    """One piece ab has 0.5, as two 0.5 · 0.5 = 0.25: twice as often; at temperature 0 all are equal."""
    scores = {"ab": -0.6931, "a": -0.6931, "b": -0.6931}
    for temperature, expected in ((1.0, 2 / 3), (0.0, 1 / 2)):
        generator = random.Random(1)
        drawn = [
            segment_unigram("ab", scores, temperature=temperature, rng=generator, unknown=-9.0) for _ in range(4_000)
        ]
        assert sum(len(pieces) == 1 for pieces in drawn) / 4_000 == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    "tokenizer",
    [Tokenizer(bpe_backend(LINES, vocab_size=300)), Tokenizer(unigram_backend(LINES, vocab_size=300))],
    ids=["bpe", "unigram"],
)
def test_what_is_spelled_by_chance_reads_the_same_and_follows_from_its_number(tokenizer: Tokenizer) -> None:
    spell = tokenizer.with_sampling(strength=0.3, seed=1)
    text = "a brown ☃ dog ran"
    spellings = {tuple(spell(text, number)) for number in range(30)}
    assert len(spellings) > 3
    assert {tokenizer.decode(ids) for ids in spellings} == {text}
    again = tokenizer.with_sampling(strength=0.3, seed=1)
    assert [again(text, number) for number in range(30)] == [spell(text, number) for number in range(30)]
