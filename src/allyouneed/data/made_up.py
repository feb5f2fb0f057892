"""Make synthetic pairs from pairs whose sides share a string, as `walk V;PST → walked` shares `walk`.

There are two kinds. A pair with other letters in the stem (Anastasopoulos and Neubig, 2019), such as `golk V;PST →
golked`, teaches a model with few training pairs to copy any stem. A pair with an unknown letter, such as `w<unk>lk
V;PST → w<unk>lked`, teaches it to copy letters that no training pair has (Luong et al., 2015, for words).
"""

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache
from random import Random

from ..text.vocabulary import Vocabulary
from .pairs import Indices, Pairs, Side

ENDING = 2  # letters at the end of a stem that stay, because inflection depends on them
SHORTEST_STEM = 2  # letters to replace
COUNTED = 100_000  # new letters are drawn with their frequency among this many source tokens
REMEMBERED = 100_000  # stems


def making_up(pairs: Pairs, vocabulary: Vocabulary, *, share: float, seed: int) -> Callable[[Indices, int], Pairs]:
    """Return a function that maps indices and an epoch to pairs. In each epoch, about `share` of the pairs are made up.

    Half of the made-up pairs get new letters in the longest string that both sides share, except in its last `ENDING`
    letters. In the other half, and in pairs whose shared string is too short, `<unk>` replaces one shared letter
    wherever it occurs. A letter is a token of one character that is neither a digit nor a mark.
    """
    source = vocabulary.source
    target = vocabulary.target
    of_target = {name: i for i, name in enumerate(target.names())}
    letters = {
        i: of_target[name]
        for i, name in enumerate(source.names())
        if len(name) == 1 and name.isalpha() and name in of_target
    }
    drawn = [i for i in pairs.source.ids[:COUNTED].tolist() if i in letters]

    @lru_cache(REMEMBERED)
    def stem(pair: int) -> tuple[int, int, int]:
        """Find where the longest shared string begins on each side, and count its letters to replace."""
        first = [letters.get(i) for i in pairs.source[pair]]
        second = pairs.target[pair]
        match = SequenceMatcher(None, first, second, autojunk=False).find_longest_match()
        return match.a, match.b, match.size - ENDING

    def made_up(pair: int, random: Random) -> tuple[list[int], list[int]]:
        read = pairs.source[pair]
        written = pairs.target[pair]
        both = sorted(i for i in set(read) if letters.get(i) in written)
        if not both or random.random() >= share:
            return read, written
        begin, other_begin, size = stem(pair)
        if size >= SHORTEST_STEM and random.random() < 0.5:
            new = random.choices(drawn, k=size)
            read[begin : begin + size] = new
            written[other_begin : other_begin + size] = [letters[i] for i in new]
            return read, written
        letter = random.choice(both)
        return _replaced(read, letter, source.unk_id), _replaced(written, letters[letter], target.unk_id)

    def resample(chosen: Indices, epoch: int) -> Pairs:
        rows = [made_up(i, Random((seed << 96) + (epoch << 48) + i)) for i in chosen.tolist()]
        return Pairs(Side.from_sentences([ids for ids, _ in rows]), Side.from_sentences([ids for _, ids in rows]))

    return resample


def _replaced(ids: list[int], old: int, new: int | None) -> list[int]:
    assert new is not None
    return [new if i == old else i for i in ids]
