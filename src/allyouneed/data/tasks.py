"""Tasks with generated pairs, which a model learns in about a minute.

    dates        1845-01-05     → January 5, 1845
    locales      de 1845-01-05  → 5. Januar 1845                 Babel's CLDR data
    numbers      847213         → eight hundred and forty-seven thousand, two hundred and thirteen
    reverse      backwrd        → drwkcab                        2 to 10 different letters
    sort         backwrd        → abcdkrw                        2 to 10 different letters

The split of a pair depends only on its source, so no pair is in two splits. Dates are in the years 1000 to 2999. A day
whose ordinal (days since 1 January of year 1) is divisible by ten is never used for training: half of these days are
for validation, the other half for the test.
"""

import random
import string
import zlib
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import Literal, get_args

import numpy as np

from ..errors import require_extra
from .agreement import sentence_pairs

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase + "-, "
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

FIRST = date(1000, 1, 1).toordinal()
LAST = date(2999, 12, 31).toordinal()


def date_pair(day: date) -> tuple[str, str]:
    """Return the source and the target for a day."""
    return day.isoformat(), f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def date_split(ordinal: int) -> Split:
    """Return the split of a day, which depends only on its ordinal."""
    if ordinal % 10:
        return "train"
    return "test" if ordinal % 20 else "valid"


def date_pairs(split: Split, *, count: int = 0, seed: int = 1) -> list[tuple[str, str]]:
    """Draw `count` different days of a split by `seed`, as pairs. A `count` of 0 returns all days, in order."""
    days = np.arange(FIRST, LAST + 1)
    days = days[np.isin(days % 20, [rest for rest in range(20) if date_split(rest) == split])]
    chosen = random.Random(seed).sample(range(len(days)), min(count, len(days))) if count else range(len(days))
    return [date_pair(date.fromordinal(int(days[i]))) for i in chosen]


LOCALES = (
    "cs", "da", "de", "el", "en", "en-GB", "es", "fi", "fr", "hr", "hu", "id",
    "it", "nl", "nb", "pl", "pt", "ro", "ru", "sv", "tr", "uk", "vi",
)  # fmt: skip
MAKE_AT_MOST = 50_000  # pairs, for tasks without a last pair

# Draws sources without end, each with a function that makes its target: most sources are of another split.
Maker = Callable[[random.Random], Iterator[tuple[str, Callable[[], str]]]]


def task_pairs(task: str, split: Split, *, count: int = 0, seed: int = 1) -> list[tuple[str, str]]:
    """Draw `count` different pairs of a task's split by `seed`. A `count` of 0 means all dates, or 50,000 other pairs.

    Refuses, as a `KeyError`, a task that is not in `TASKS`.
    """
    if task == "dates":
        return date_pairs(split, count=count, seed=seed)
    most = count or MAKE_AT_MOST
    pairs: dict[str, str] = {}
    # Generators never end, but there are few short strings: stop after 1,000 draws without a new pair.
    stale = 0
    for source, make_target in _MAKERS[task](random.Random(f"{task} {seed}")):
        if text_split(source) == split and source not in pairs:
            pairs[source] = make_target()
            stale = 0
        stale += 1
        if len(pairs) == most or stale > 1_000:
            break
    return list(pairs.items())


def text_split(source: str) -> Split:
    """Return the split of a source: one in twenty is for validation, and one in twenty for the test.

    Sources of up to three characters are always for training, because too few remain to learn them from.
    """
    if len(source) <= 3:
        return SPLITS[0]
    return {0: SPLITS[1], 1: SPLITS[2]}.get(zlib.crc32(source.encode()) % 20, SPLITS[0])


def _words(rng: random.Random) -> Iterator[str]:
    """Draw 2 to 10 different letters. With repeated letters, the model would also have to learn to count."""
    while True:
        yield "".join(rng.sample(string.ascii_lowercase, rng.randint(2, 10)))


def _numbers(rng: random.Random) -> Iterator[tuple[str, Callable[[], str]]]:
    engine = require_extra("inflect", 'the task "numbers"', "tasks").engine()
    while True:
        # All lengths equally often, and many zeros, because the difficult numbers would otherwise be rare.
        digits = rng.randint(1, 6)
        number = int("".join("0" if rng.random() < 0.3 else rng.choice("123456789") for _ in range(digits)))
        yield str(number), partial(engine.number_to_words, str(number))


def _locales(rng: random.Random) -> Iterator[tuple[str, Callable[[], str]]]:
    format_date = require_extra("babel.dates", 'the task "locales"', "tasks").format_date
    while True:
        day = date.fromordinal(rng.randint(FIRST, LAST))
        locale = rng.choice(LOCALES)
        make_target = partial(format_date, day, "long", locale=locale.replace("-", "_"))
        yield f"{locale} {day.isoformat()}", make_target


_MAKERS: dict[str, Maker] = {
    "agreement": lambda rng: ((source, partial(str, target)) for source, target in sentence_pairs(rng)),
    "locales": _locales,
    "numbers": _numbers,
    "reverse": lambda rng: ((word, partial("".join, reversed(word))) for word in _words(rng)),
    "sort": lambda rng: ((word, partial("".join, sorted(word))) for word in _words(rng)),
}
TASKS = ("dates", *sorted(_MAKERS))
