"""What a sentence must say, and how far it has come: the bookkeeping of a constrained search.

A phrase is said when one of its spellings stands in the sentence, whole: not glued to a word before
or after it. Different phrases take different places. A sentence may be read in several ways, as long
as it is not over (is this "York" the demanded one, or the end of the demanded "New York"?), so
progress is a set of readings: all but those that another one of the set is as good as, whatever
comes. Else every phrase that has been said would double their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import le
from typing import NamedTuple

Spelling = tuple[int, ...]


class Phrase(NamedTuple):
    """Ids, in one of several spellings, that must be said so many `times`."""

    spellings: tuple[Spelling, ...]
    times: int = 1


class Seams(NamedTuple):
    """Which ids stick together to one word: one of `sticky_end`, then one of `sticky_start`."""

    sticky_start: frozenset[int] = frozenset()
    sticky_end: frozenset[int] = frozenset()

    def glued(self, before: int, after: int) -> bool:
        """Whether there is no word boundary between two ids."""
        return before in self.sticky_end and after in self.sticky_start


class Reading(NamedTuple):
    """How often each phrase is still to be said, and which is being said: phrase, spelling, ids so far."""

    owed: tuple[int, ...]
    saying: tuple[int, int, int] | None = None


class Further(NamedTuple):
    """Words that lead a hypothesis further, and whether any word does that is unglued to the last, or not sticky."""

    words: set[int]
    any_unglued: bool
    any_loose: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The ways to read what a hypothesis has said so far, those left out that can be no better than another."""

    phrases: tuple[Phrase, ...]
    seams: Seams
    last: int
    readings: frozenset[Reading]

    @classmethod
    def begin(cls, phrases: Sequence[Phrase], seams: Seams, *, sos_id: int) -> "Progress":
        """Nothing is said yet."""
        return cls(tuple(phrases), seams, sos_id, frozenset({Reading(tuple(phrase.times for phrase in phrases))}))

    def after(self, word: int) -> "Progress":
        """One word later."""
        glued = self.seams.glued(self.last, word)
        readings = set()
        for reading in self.readings:
            if reading.saying and not self._is_said(reading):
                phrase, spelling, count = reading.saying
                if self.phrases[phrase].spellings[spelling][count] == word:
                    readings.add(Reading(reading.owed, (phrase, spelling, count + 1)))
                continue
            if reading.saying and glued:
                continue  # it goes on as another word
            owed = self._settled(reading)
            readings.add(Reading(owed))
            if not glued:
                readings.update(
                    Reading(owed, (phrase, spelling, 1))
                    for phrase, spelling, first in self._beginnings(owed)
                    if first == word
                )
        return Progress(self.phrases, self.seams, word, _undominated(readings))

    @property
    def is_complete(self) -> bool:
        """Whether the sentence may end here."""
        return any(not any(self._settled(reading)) for reading in self.readings)

    @property
    def place(self) -> tuple[int, int, bool]:
        """How far it has come, in the best reading: larger is further, and `next_words` leads further."""
        return max(self._place(reading) for reading in self.readings)

    def next_words(self) -> Further:
        """What could be said next to come further."""
        words: set[int] = set()
        any_unglued = any_loose = False
        for reading in self.readings:
            if reading.saying and not self._is_said(reading):
                phrase, spelling, count = reading.saying
                words.add(self.phrases[phrase].spellings[spelling][count])
                continue
            any_unglued |= reading.saying is not None and self.last in self.seams.sticky_end
            owed = self._settled(reading)
            firsts = {first for _, _, first in self._beginnings(owed)}
            startable = {first for first in firsts if not self.seams.glued(self.last, first)}
            words |= startable
            any_loose |= bool(firsts) and not startable
        return Further(words, any_unglued, any_loose)

    def _place(self, reading: Reading) -> tuple[int, int, bool]:
        owed = reading.owed
        said = sum(phrase.times for phrase in self.phrases) - sum(owed)
        startable = any(not self.seams.glued(self.last, first) for _, _, first in self._beginnings(owed))
        return said, reading.saying[2] if reading.saying else 0, startable

    def _is_said(self, reading: Reading) -> bool:
        phrase, spelling, count = reading.saying or (0, 0, 0)
        return reading.saying is not None and count == len(self.phrases[phrase].spellings[spelling])

    def _settled(self, reading: Reading) -> tuple[int, ...]:
        """What is owed once a phrase that has been said to its end counts."""
        if not self._is_said(reading):
            return reading.owed
        assert reading.saying is not None
        said = reading.saying[0]
        return tuple(count - (phrase == said) for phrase, count in enumerate(reading.owed))

    def _beginnings(self, owed: tuple[int, ...]) -> list[tuple[int, int, int]]:
        return [
            (phrase, spelling, ids[0])
            for phrase, count in enumerate(owed)
            if count
            for spelling, ids in enumerate(self.phrases[phrase].spellings)
        ]


def _undominated(readings: set[Reading]) -> frozenset[Reading]:
    """The readings but those that say the same as another one, and owe as much of every phrase or more.

    What ends such a reading's sentence well ends the other's: it may read as free words what only the
    worse one still owes.
    """
    kept: dict[tuple[int, int, int] | None, list[Reading]] = {}
    for reading in sorted(readings, key=lambda reading: sum(reading.owed)):  # none is dominated by one after it
        better = kept.setdefault(reading.saying, [])
        if not any(all(map(le, other.owed, reading.owed)) for other in better):
            better.append(reading)
    return frozenset(chain.from_iterable(kept.values()))


def longest_need(phrases: Sequence[Phrase]) -> int:
    """So many ids are enough to say all phrases and the end sign, whatever their order."""
    return 1 + sum(phrase.times * (max(map(len, phrase.spellings)) + 2) for phrase in phrases)
