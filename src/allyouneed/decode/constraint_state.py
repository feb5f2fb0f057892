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


class PhraseConstraint(NamedTuple):
    """Ids, in one of several spellings, that must be said so many `times`."""

    spellings: tuple[Spelling, ...]
    times: int = 1


class WordBoundaries(NamedTuple):
    """Which ids stick together to one word: one of `sticky_end`, then one of `sticky_start`."""

    starts_in_word: frozenset[int] = frozenset()
    ends_in_word: frozenset[int] = frozenset()

    def same_word(self, before: int, after: int) -> bool:
        """Whether there is no word boundary between two ids."""
        return before in self.ends_in_word and after in self.starts_in_word


class Reading(NamedTuple):
    """How often each phrase is still to be said, and which is being said: phrase, spelling, ids so far."""

    remaining: tuple[int, ...]
    in_progress: tuple[int, int, int] | None = None


class NextTokens(NamedTuple):
    """Words that lead a hypothesis further, and whether any word does that is unglued to the last, or not sticky."""

    tokens: set[int]
    any_unglued: bool
    any_loose: bool


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """The ways to read what a hypothesis has said so far, those left out that can be no better than another."""

    phrases: tuple[PhraseConstraint, ...]
    boundaries: WordBoundaries
    last: int
    readings: frozenset[Reading]

    @classmethod
    def begin(cls, phrases: Sequence[PhraseConstraint], seams: WordBoundaries, *, sos_id: int) -> "ConstraintState":
        """Nothing is said yet."""
        return cls(tuple(phrases), seams, sos_id, frozenset({Reading(tuple(phrase.times for phrase in phrases))}))

    def after(self, word: int) -> "ConstraintState":
        """One word later."""
        glued = self.boundaries.same_word(self.last, word)
        readings = set()
        for reading in self.readings:
            if reading.in_progress and not self._is_complete(reading):
                phrase, spelling, count = reading.in_progress
                if self.phrases[phrase].spellings[spelling][count] == word:
                    readings.add(Reading(reading.remaining, (phrase, spelling, count + 1)))
                continue
            if reading.in_progress and glued:
                continue  # it goes on as another word
            owed = self._settled(reading)
            readings.add(Reading(owed))
            if not glued:
                readings.update(
                    Reading(owed, (phrase, spelling, 1))
                    for phrase, spelling, first in self._beginnings(owed)
                    if first == word
                )
        return ConstraintState(self.phrases, self.boundaries, word, _undominated(readings))

    @property
    def is_complete(self) -> bool:
        """Whether the sentence may end here."""
        return any(not any(self._settled(reading)) for reading in self.readings)

    @property
    def rank(self) -> tuple[int, int, bool]:
        """How far it has come, in the best reading: larger is further, and `next_tokens` leads further."""
        return max(self._rank(reading) for reading in self.readings)

    def next_tokens(self) -> NextTokens:
        """What could be said next to come further."""
        words: set[int] = set()
        any_unglued = any_loose = False
        for reading in self.readings:
            if reading.in_progress and not self._is_complete(reading):
                phrase, spelling, count = reading.in_progress
                words.add(self.phrases[phrase].spellings[spelling][count])
                continue
            any_unglued |= reading.in_progress is not None and self.last in self.boundaries.ends_in_word
            owed = self._settled(reading)
            firsts = {first for _, _, first in self._beginnings(owed)}
            startable = {first for first in firsts if not self.boundaries.same_word(self.last, first)}
            words |= startable
            any_loose |= bool(firsts) and not startable
        return NextTokens(words, any_unglued, any_loose)

    def _rank(self, reading: Reading) -> tuple[int, int, bool]:
        owed = reading.remaining
        generated = sum(phrase.times for phrase in self.phrases) - sum(owed)
        startable = any(not self.boundaries.same_word(self.last, first) for _, _, first in self._beginnings(owed))
        return generated, reading.in_progress[2] if reading.in_progress else 0, startable

    def _is_complete(self, reading: Reading) -> bool:
        phrase, spelling, count = reading.in_progress or (0, 0, 0)
        return reading.in_progress is not None and count == len(self.phrases[phrase].spellings[spelling])

    def _settled(self, reading: Reading) -> tuple[int, ...]:
        """What is owed once a phrase that has been said to its end counts."""
        if not self._is_complete(reading):
            return reading.remaining
        assert reading.in_progress is not None
        completed = reading.in_progress[0]
        return tuple(count - (phrase == completed) for phrase, count in enumerate(reading.remaining))

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
    for reading in sorted(readings, key=lambda reading: sum(reading.remaining)):  # none is dominated by one after it
        better = kept.setdefault(reading.in_progress, [])
        if not any(all(map(le, other.remaining, reading.remaining)) for other in better):
            better.append(reading)
    return frozenset(chain.from_iterable(kept.values()))


def max_constrained_length(phrases: Sequence[PhraseConstraint]) -> int:
    """So many ids are enough to say all phrases and the end sign, whatever their order."""
    return 1 + sum(phrase.times * (max(map(len, phrase.spellings)) + 2) for phrase in phrases)
