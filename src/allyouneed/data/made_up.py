"""Make synthetic pairs from pairs whose sides share a string, as `walk V;PST → walked` shares `walk`.

There are three kinds. A pair with other letters in the stem (Anastasopoulos and Neubig, 2019), such as `golk V;PST →
golked`, teaches a model with few training pairs to copy any stem. A pair with an unknown letter, such as `w<unk>lk
V;PST → w<unk>lked`, teaches it to copy letters that no training pair has (Luong et al., 2015, for words). A pair with
an unknown tag, such as `walk V;<unk> → walk`, teaches it to copy the word if it cannot know what a tag asks for; copied
words also help with few pairs (Yang et al., 2022).
"""

from difflib import SequenceMatcher
from functools import lru_cache
from random import Random

from ..text.vocabulary import Vocabulary
from .pairs import Indices, Pairs, Side

ENDING = 2  # letters at the end of a stem that stay, because inflection depends on them
SHORTEST_STEM = 2  # letters to replace
COUNTED = 100_000  # new letters are drawn with their frequency among this many source tokens
REMEMBERED = 100_000  # stems
OTHERS = 4  # pairs of each other kind to one with an unknown tag; more such pairs teach copying where it is wrong

Row = tuple[list[int], list[int]]
"""The ids of a source and of its target."""


class MadeUpPairs:
    """Maps indices of `pairs` and an epoch to pairs of ids. In each epoch, about `share` of the pairs are made up.

    Only pairs whose sides share a letter are made up. A letter is a token of one character that is neither a digit nor
    a mark. New letters replace the longest shared string, except its last `ENDING` letters; as often, `<unk>` replaces
    one shared letter wherever it occurs. Unknown tags are rarer, and are encoded by letters.
    """

    def __init__(self, pairs: Pairs, vocabulary: Vocabulary, *, share: float, seed: int) -> None:
        source = vocabulary.source
        names = dict(enumerate(source.names()))
        of_target = {name: i for i, name in enumerate(vocabulary.target.names())}
        special = {source.pad_id, source.sos_id, source.eos_id, source.unk_id}
        self._pairs = pairs
        self._source = source
        self._target = vocabulary.target
        self._share = share
        self._seed = seed
        self._letters = {
            i: of_target[name] for i, name in names.items() if len(name) == 1 and name.isalpha() and name in of_target
        }
        self._tags = {
            i: [part for character in name for part in source.content(source.encode(character))]
            for i, name in names.items()
            if len(name) > 1 and i not in special
        }
        self._drawn = [i for i in pairs.source.ids[:COUNTED].tolist() if i in self._letters]
        self._stem = lru_cache(REMEMBERED)(self._find_stem)

    def __call__(self, chosen: Indices, epoch: int) -> Pairs:
        rows = [self._row(i, Random((self._seed << 96) + (epoch << 48) + i)) for i in chosen.tolist()]
        return Pairs(Side.from_sentences([ids for ids, _ in rows]), Side.from_sentences([ids for _, ids in rows]))

    def _row(self, pair: int, random: Random) -> Row:
        read = self._pairs.source[pair]
        written = self._pairs.target[pair]
        both = sorted(i for i in set(read) if self._letters.get(i) in written)
        if not both or random.random() >= self._share:
            return read, written
        kinds = ["letter"] * OTHERS
        if self._stem(pair)[2] >= SHORTEST_STEM:
            kinds += ["stem"] * OTHERS
        if self._source.unk_id not in read and any(i in self._tags for i in read):
            kinds.append("tag")
        match random.choice(kinds):
            case "stem":
                return self._with_other_letters(pair, read, written, random)
            case "tag":
                return self._with_unknown_tag(read, random)
            case _:
                letter = random.choice(both)
                of_source = _replaced(read, letter, self._source.unk_id)
                return of_source, _replaced(written, self._letters[letter], self._target.unk_id)

    def _with_other_letters(self, pair: int, read: list[int], written: list[int], random: Random) -> Row:
        begin, other_begin, size = self._stem(pair)
        new = random.choices(self._drawn, k=size)
        read[begin : begin + size] = new
        written[other_begin : other_begin + size] = [self._letters[i] for i in new]
        return read, written

    def _with_unknown_tag(self, read: list[int], random: Random) -> Row:
        unknown = random.choice([k for k, i in enumerate(read) if i in self._tags])
        word = self._source.decode([i for i in read if i not in self._tags]).strip()
        return [*read[:unknown], *self._tags[read[unknown]], *read[unknown + 1 :]], self._target.encode(word)

    def _find_stem(self, pair: int) -> tuple[int, int, int]:
        """Find where the longest shared string begins on each side, and count its letters to replace."""
        first = [self._letters.get(i) for i in self._pairs.source[pair]]
        second = self._pairs.target[pair]
        match = SequenceMatcher(None, first, second, autojunk=False).find_longest_match()
        return match.a, match.b, match.size - ENDING


def _replaced(ids: list[int], old: int, new: int | None) -> list[int]:
    assert new is not None
    return [new if i == old else i for i in ids]
