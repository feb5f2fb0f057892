"""Make synthetic pairs from pairs whose sides share a string, as `walk V;PST → walked` shares `walk`.

There are three kinds. A pair with other letters in the stem (Anastasopoulos and Neubig, 2019), such as `golk V;PST →
golked`, teaches a model with few training pairs to copy any stem. A pair with an unknown letter, such as `w<unk>lk
V;PST → w<unk>lked`, teaches it to copy letters that no training pair has (Luong et al., 2015, for words). A pair with
an unknown tag, such as `walk V;<unk> → walk`, teaches it to copy the word if it cannot know what a tag asks for; copied
words also help with few pairs (Yang et al., 2022).
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

Row = tuple[list[int], list[int]]
"""The ids of a source and of its target."""


def making_up(pairs: Pairs, vocabulary: Vocabulary, *, share: float, seed: int) -> Callable[[Indices, int], Pairs]:
    """Return a function that maps indices and an epoch to pairs. In each epoch, about `share` of the pairs are made up.

    Only pairs whose sides share a letter are made up: a token of one character that is neither a digit nor a mark. The
    kinds that a pair allows are equally frequent. New letters replace the longest string that both sides share, except
    for its last `ENDING` letters. `<unk>` replaces one shared letter wherever it occurs. An unknown tag is encoded
    letter by letter.
    """
    source = vocabulary.source
    target = vocabulary.target
    of_target = {name: i for i, name in enumerate(target.names())}
    one_character = {i: name for i, name in enumerate(source.names()) if len(name) == 1}
    letters = {i: of_target[name] for i, name in one_character.items() if name.isalpha() and name in of_target}
    special = {source.pad_id, source.sos_id, source.eos_id, source.unk_id}
    tags = {
        i: [part for character in name for part in source.content(source.encode(character))]
        for i, name in enumerate(source.names())
        if i not in one_character and i not in special
    }
    drawn = [i for i in pairs.source.ids[:COUNTED].tolist() if i in letters]

    @lru_cache(REMEMBERED)
    def stem(pair: int) -> tuple[int, int, int]:
        """Find where the longest shared string begins on each side, and count its letters to replace."""
        first = [letters.get(i) for i in pairs.source[pair]]
        second = pairs.target[pair]
        match = SequenceMatcher(None, first, second, autojunk=False).find_longest_match()
        return match.a, match.b, match.size - ENDING

    def with_other_letters(pair: int, read: list[int], written: list[int], random: Random) -> Row:
        begin, other_begin, size = stem(pair)
        new = random.choices(drawn, k=size)
        read[begin : begin + size] = new
        written[other_begin : other_begin + size] = [letters[i] for i in new]
        return read, written

    def with_unknown_letter(both: list[int], read: list[int], written: list[int], random: Random) -> Row:
        letter = random.choice(both)
        return _replaced(read, letter, source.unk_id), _replaced(written, letters[letter], target.unk_id)

    def with_unknown_tag(read: list[int], random: Random) -> Row:
        unknown = random.choice([k for k, i in enumerate(read) if i in tags])
        word = target.encode(source.decode([i for i in read if i not in tags]).strip())
        return [*read[:unknown], *tags[read[unknown]], *read[unknown + 1 :]], word

    def made_up(pair: int, random: Random) -> Row:
        read = pairs.source[pair]
        written = pairs.target[pair]
        both = sorted(i for i in set(read) if letters.get(i) in written)
        if not both or random.random() >= share:
            return read, written
        kinds = (
            ["letter"]
            + ["stem"] * (stem(pair)[2] >= SHORTEST_STEM)
            + ["tag"] * (source.unk_id not in read and any(i in tags for i in read))
        )
        match random.choice(kinds):
            case "stem":
                return with_other_letters(pair, read, written, random)
            case "tag":
                return with_unknown_tag(read, random)
            case _:
                return with_unknown_letter(both, read, written, random)

    def resample(chosen: Indices, epoch: int) -> Pairs:
        rows = [made_up(i, Random((seed << 96) + (epoch << 48) + i)) for i in chosen.tolist()]
        return Pairs(Side.from_sentences([ids for ids, _ in rows]), Side.from_sentences([ids for _, ids in rows]))

    return resample


def _replaced(ids: list[int], old: int, new: int | None) -> list[int]:
    assert new is not None
    return [new if i == old else i for i in ids]
