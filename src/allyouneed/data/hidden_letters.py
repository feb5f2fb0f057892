"""Letters that both sides of a pair have, read and written as unknown, so that a model learns to copy what is unknown.

A name may have a letter that no training pair has. `<unk>` stands for it on the side of the source, and a model that
has seen `<unk>` on both sides writes it where the letter belongs (Luong et al., 2015, for words).
"""

from collections.abc import Callable
from random import Random

from ..text.vocabulary import Vocabulary
from .pairs import Indices, Pairs, Side


def hiding_letters(pairs: Pairs, vocabulary: Vocabulary, *, share: float, seed: int) -> Callable[[Indices, int], Pairs]:
    """A function that returns pairs, given by their indices, as they are in an epoch.

    In about `share` of the pairs one letter that both sides have is `<unk>` wherever it stands, another letter in
    another epoch. A letter is a token of one character, no digit and no mark.
    """
    source, target = vocabulary.source, vocabulary.target
    of_target = {name: i for i, name in enumerate(target.names())}
    letters = {
        i: of_target[name]
        for i, name in enumerate(source.names())
        if len(name) == 1 and name.isalpha() and name in of_target
    }

    def hidden(source_ids: list[int], target_ids: list[int], random: Random) -> tuple[list[int], list[int]]:
        written = set(target_ids)
        both = sorted(i for i in set(source_ids) if letters.get(i) in written)
        if not both or random.random() >= share:
            return source_ids, target_ids
        letter = random.choice(both)
        return _replaced(source_ids, letter, source.unk_id), _replaced(target_ids, letters[letter], target.unk_id)

    def resample(chosen: Indices, epoch: int) -> Pairs:
        rows = [
            hidden(pairs.source[i], pairs.target[i], Random((seed << 96) + (epoch << 48) + i)) for i in chosen.tolist()
        ]
        return Pairs(Side.from_sentences([ids for ids, _ in rows]), Side.from_sentences([ids for _, ids in rows]))

    return resample


def _replaced(ids: list[int], old: int, new: int | None) -> list[int]:
    assert new is not None
    return [new if i == old else i for i in ids]
