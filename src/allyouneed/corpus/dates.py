"""The date task: `1845-01-05` → `January 5, 1845`, generated.

Years 1000 to 2999. A day whose ordinal (days since 1 January of year 1) is divisible by ten is
never trained on: half of those days are for validation, half for the test.
"""

import random
import string
from datetime import date
from typing import Literal, get_args

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase + "-, "
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

FIRST, LAST = date(1000, 1, 1).toordinal(), date(2999, 12, 31).toordinal()


def date_pair(day: date) -> tuple[str, str]:
    """The source and the target of one day."""
    return day.isoformat(), f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def date_split(ordinal: int) -> Split:
    """Which part of the data a day belongs to, by its ordinal alone."""
    if ordinal % 10:
        return "train"
    return "test" if ordinal % 20 else "valid"


def date_pairs(split: Split, *, count: int = 0, seed: int = 1) -> list[tuple[str, str]]:
    """`count` different days of one split, drawn by `seed`; all of them, in order, if `count` is 0."""
    days = [ordinal for ordinal in range(FIRST, LAST + 1) if date_split(ordinal) == split]
    if count:
        days = random.Random(seed).sample(days, min(count, len(days)))
    return [date_pair(date.fromordinal(day)) for day in days]
