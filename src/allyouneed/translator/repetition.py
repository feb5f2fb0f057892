"""Repetitive translations, in which the same few tokens occur again and again."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple


class Repetition(NamedTuple):
    """A run of `length` tokens in which the same `period` tokens occur at least three times in a row."""

    period: int
    length: int


LONGEST_PERIOD = 12
WORTH_MENTIONING = 8  # tokens; shorter repetitions are normal: "no, no, no", or the year 1111
WORDS_IN_A_ROW = 4  # how often a word may follow itself with nothing in between


def longest_repetition(ids: Sequence[int]) -> Repetition:
    """Find the longest run that repeats itself. Its length is 0 if there is none."""
    best = Repetition(0, 0)
    for period in range(1, min(LONGEST_PERIOD, len(ids) // 3) + 1):
        same = 0
        for i in range(period, len(ids)):
            same = same + 1 if ids[i] == ids[i - period] else 0
            if same >= 2 * period and same + period > best.length:
                best = Repetition(period, same + period)
    return best


def is_repetitive(
    ids: Sequence[int], source: Sequence[int], *, normal: int = 0, is_word: Callable[[int], bool] = lambda _: False
) -> bool:
    """Return True if a translation repeats itself much more than its source does, and more than is normal.

    `normal` is the longest repetition in the training targets, in tokens. `is_word` returns True for a token that is a
    whole word; words may be repeated less often than other tokens.
    """
    length = longest_repetition(ids).length
    runs = ((token, len(list(run))) for token, run in groupby(ids))
    is_long = length >= WORTH_MENTIONING or any(count >= WORDS_IN_A_ROW and is_word(token) for token, count in runs)
    return is_long and length > max(normal, 2 * longest_repetition(source).length)
