import re
from datetime import date

import pytest

from allyouneed.corpus.dates import ALPHABET, SPLITS, date_pair, date_pairs, date_split
from allyouneed.text.tokenizer import Tokenizer

EXAMPLES = {
    "1845-01-05": "January 5, 1845",
    "1467-07-28": "July 28, 1467",
    "1468-01-11": "January 11, 1468",
    "1996-09-08": "September 8, 1996",
    "1959-03-02": "March 2, 1959",
}


@pytest.mark.parametrize(("source", "target"), EXAMPLES.items())
def test_the_examples(source: str, target: str) -> None:
    assert date_pair(date.fromisoformat(source)) == (source, target)


def test_the_ids_of_the_examples() -> None:
    tokenizer = Tokenizer.characters(ALPHABET)
    assert len(tokenizer) == 68
    assert (tokenizer.sos_id, tokenizer.eos_id, tokenizer.pad_id) == (65, 66, 67)
    assert tokenizer.encode("1676-11-30") == [65, 1, 6, 7, 6, 62, 1, 1, 62, 3, 0, 66]
    written = tokenizer.encode("November 30, 1676")
    assert written == [65, 23, 50, 57, 40, 48, 37, 40, 53, 64, 3, 0, 63, 64, 1, 6, 7, 6, 66]
    assert len(tokenizer.encode("September 28, 1976")) == 20  # the longest


def test_a_day_whose_ordinal_is_divisible_by_ten_is_never_trained_on() -> None:
    trained = {date.fromisoformat(source).toordinal() for source, _ in date_pairs("train", count=20_000)}
    assert not any(ordinal % 10 == 0 for ordinal in trained)


def test_the_splits_cover_all_days_and_share_none() -> None:
    days = [{source for source, _ in date_pairs(split)} for split in SPLITS]
    assert sum(map(len, days)) == len(set.union(*days)) == (date(3000, 1, 1) - date(1000, 1, 1)).days
    assert {len(part) for part in days[1:]} == {36_524, 36_525}


def test_every_ordinal_has_one_split() -> None:
    assert [date_split(ordinal) for ordinal in (19, 20, 21, 30, 40)] == [
        "train",
        "valid",
        "train",
        "test",
        "valid",
    ]


def test_a_draw_follows_its_seed() -> None:
    assert date_pairs("test", count=50, seed=3) == date_pairs("test", count=50, seed=3)
    assert date_pairs("test", count=50, seed=3) != date_pairs("test", count=50, seed=4)
    assert len({source for source, _ in date_pairs("test", count=500)}) == 500


def test_both_sides_say_the_same_day() -> None:
    months = {
        month: number
        for number, month in enumerate(
            [
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
            ],
            start=1,
        )
    }
    for source, target in date_pairs("train", count=500):
        match = re.fullmatch(r"(\w+) (\d+), (\d{4})", target)
        assert match
        month, day, year = match.groups()
        assert source == f"{year}-{months[month]:02d}-{int(day):02d}"
