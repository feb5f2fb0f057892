"""The lexical constraints of a sentence, and how much of them a hypothesis has written.

A phrase is complete when the sentence contains one of its spellings as whole words. Phrases do not overlap. A sentence
that is still being written can be read in several ways: "York" may be a phrase of its own, or end the phrase "New
York". So the state is a set of readings. It leaves out every reading that cannot do better than another; otherwise the
number of readings would double with each complete phrase.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import le
from typing import NamedTuple

from ..decode import Spelling


class PhraseConstraint(NamedTuple):
    """A phrase that must occur `times` times. Each spelling is a sequence of ids, and any spelling counts."""

    spellings: tuple[Spelling, ...]
    times: int = 1


class WordBoundaries(NamedTuple):
    """Where words end: between any two tokens, unless the first `ends_in_word` and the second `starts_in_word`."""

    starts_in_word: frozenset[int] = frozenset()
    ends_in_word: frozenset[int] = frozenset()

    def same_word(self, before: int, after: int) -> bool:
        """Return True if there is no word boundary between two tokens."""
        return before in self.ends_in_word and after in self.starts_in_word


class Reading(NamedTuple):
    """How often each phrase is still missing, and the phrase in progress: index, spelling, number of tokens so far."""

    remaining: tuple[int, ...]
    in_progress: tuple[int, int, int] | None = None


class NextTokens(NamedTuple):
    """The tokens that advance a hypothesis.

    If `any_new_word` is set, so does every token that begins a new word; if `any_word_end` is set, so does every token
    after which a word may begin.
    """

    tokens: set[int]
    any_new_word: bool
    any_word_end: bool


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """All ways to read the tokens of a hypothesis, without readings that can never do better than another."""

    phrases: tuple[PhraseConstraint, ...]
    boundaries: WordBoundaries
    last: int
    readings: frozenset[Reading]

    @classmethod
    def begin(
        cls, phrases: Sequence[PhraseConstraint], boundaries: WordBoundaries, *, sos_id: int
    ) -> "ConstraintState":
        """Return the state before the first token."""
        return cls(tuple(phrases), boundaries, sos_id, frozenset({Reading(tuple(phrase.times for phrase in phrases))}))

    def after(self, token: int) -> "ConstraintState":
        """Return the state after one more token."""
        same_word = self.boundaries.same_word(self.last, token)
        readings = set()
        for reading in self.readings:
            if reading.in_progress and not self._is_complete(reading):
                phrase, spelling, count = reading.in_progress
                if self.phrases[phrase].spellings[spelling][count] == token:
                    readings.add(Reading(reading.remaining, (phrase, spelling, count + 1)))
                continue
            if reading.in_progress and same_word:
                continue  # the phrase turned out to be the beginning of a longer word
            missing = self._missing(reading)
            readings.add(Reading(missing))
            if not same_word:
                readings.update(
                    Reading(missing, (phrase, spelling, 1))
                    for phrase, spelling, first in self._beginnings(missing)
                    if first == token
                )
        return ConstraintState(self.phrases, self.boundaries, token, _undominated(readings))

    @property
    def is_complete(self) -> bool:
        """True if the sentence may end here."""
        return any(not any(self._missing(reading)) for reading in self.readings)

    @property
    def rank(self) -> tuple[int, int, bool]:
        """The progress of the best reading. Every token in `next_tokens` leads to a higher rank."""
        return max(self._rank(reading) for reading in self.readings)

    def next_tokens(self) -> NextTokens:
        """Return the tokens that advance a phrase."""
        tokens: set[int] = set()
        any_new_word = any_word_end = False
        for reading in self.readings:
            if reading.in_progress and not self._is_complete(reading):
                phrase, spelling, count = reading.in_progress
                tokens.add(self.phrases[phrase].spellings[spelling][count])
                continue
            any_new_word |= reading.in_progress is not None and self.last in self.boundaries.ends_in_word
            missing = self._missing(reading)
            firsts = {first for _, _, first in self._beginnings(missing)}
            startable = {first for first in firsts if not self.boundaries.same_word(self.last, first)}
            tokens |= startable
            any_word_end |= bool(firsts) and not startable
        return NextTokens(tokens, any_new_word, any_word_end)

    def _rank(self, reading: Reading) -> tuple[int, int, bool]:
        missing = reading.remaining
        generated = sum(phrase.times for phrase in self.phrases) - sum(missing)
        startable = any(not self.boundaries.same_word(self.last, first) for _, _, first in self._beginnings(missing))
        return generated, reading.in_progress[2] if reading.in_progress else 0, startable

    def _is_complete(self, reading: Reading) -> bool:
        phrase, spelling, count = reading.in_progress or (0, 0, 0)
        return reading.in_progress is not None and count == len(self.phrases[phrase].spellings[spelling])

    def _missing(self, reading: Reading) -> tuple[int, ...]:
        """Count how often each phrase is still missing. A completed phrase in progress does not count as missing."""
        if not self._is_complete(reading):
            return reading.remaining
        assert reading.in_progress is not None
        completed = reading.in_progress[0]
        return tuple(count - (phrase == completed) for phrase, count in enumerate(reading.remaining))

    def _beginnings(self, missing: tuple[int, ...]) -> list[tuple[int, int, int]]:
        return [
            (phrase, spelling, ids[0])
            for phrase, count in enumerate(missing)
            if count
            for spelling, ids in enumerate(self.phrases[phrase].spellings)
        ]


def _undominated(readings: set[Reading]) -> frozenset[Reading]:
    """Drop a reading if another has the same phrase in progress and misses no phrase more often.

    Any continuation that completes the dropped reading also completes the other.
    """
    kept: dict[tuple[int, int, int] | None, list[Reading]] = {}
    # Sorted so that a reading is never dominated by a later one.
    for reading in sorted(readings, key=lambda reading: sum(reading.remaining)):
        better = kept.setdefault(reading.in_progress, [])
        if not any(all(map(le, other.remaining, reading.remaining)) for other in better):
            better.append(reading)
    return frozenset(chain.from_iterable(kept.values()))


def max_constrained_length(phrases: Sequence[PhraseConstraint]) -> int:
    """Return a number of tokens that suffices for all phrases in any order, and for the end token."""
    return 1 + sum(phrase.times * (max(map(len, phrase.spellings)) + 2) for phrase in phrases)


def min_constrained_length(phrases: Sequence[PhraseConstraint]) -> int:
    """Return the number of tokens of all phrases, each in its shortest spelling."""
    return sum(phrase.times * min(map(len, phrase.spellings)) for phrase in phrases)
