"""Generated pairs."""

import re
import sys
from collections import Counter
from datetime import date

import pytest

from allyouneed.config import Recipe
from allyouneed.data.agreement import ARTICLES, FIRST, LOOKS, MOODS, PEOPLE, PLACES, THINGS
from allyouneed.data.tasks import (
    ALPHABET,
    LOCALES,
    SPLITS,
    TASKS,
    date_pair,
    date_pairs,
    date_split,
    task_pairs,
    text_split,
)
from allyouneed.errors import MissingExtraError
from allyouneed.recipes import recipe_path
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


@pytest.mark.parametrize("task", TASKS)
def test_a_task_makes_as_many_different_pairs_as_are_asked_for_and_the_same_again(task: str) -> None:
    pairs = task_pairs(task, "train", count=300)
    assert len({source for source, _ in pairs}) == 300
    assert pairs == task_pairs(task, "train", count=300)
    assert pairs != task_pairs(task, "train", count=300, seed=2)


@pytest.mark.parametrize("task", TASKS)
def test_the_splits_share_no_source(task: str) -> None:
    splits = [{source for source, _ in task_pairs(task, split, count=300)} for split in SPLITS]
    assert sum(map(len, splits)) == len(set.union(*splits))


def test_a_split_has_its_share() -> None:
    shares = [text_split(str(number)) for number in range(10_000)]
    assert 400 < shares.count("valid") < 600
    assert 400 < shares.count("test") < 600


def test_what_the_tasks_say() -> None:
    assert all(target == source[::-1] for source, target in task_pairs("reverse", "test", count=50))
    assert all(list(target) == sorted(source) for source, target in task_pairs("sort", "test", count=50))
    numbers = dict(task_pairs("numbers", "train", count=2_000))
    assert numbers["42"] == "forty-two"
    thousands = {source: target for source, target in numbers.items() if len(source) == 6 and source.endswith("000")}
    assert all(target.endswith("thousand") for target in thousands.values())
    german = [pair for pair in task_pairs("locales", "train", count=2_000) if pair[0].startswith("de ")]
    source, target = next(pair for pair in german if "-03-" in pair[0])
    assert target == f"{int(source[-2:])}. März {int(source[3:7])}"


def test_the_ending_of_a_sentence_agrees_with_its_first_noun() -> None:
    articles = {
        article: (number, gender) for number, pair in enumerate(ARTICLES) for gender, article in enumerate(pair)
    }
    predicates = {adjective.english: adjective.italian for adjective in MOODS + LOOKS}
    pairs = task_pairs("agreement", "test", count=500)
    assert sum(" che " in target for _, target in pairs) > 250
    for source, target in pairs:
        first, *_, verb, ending = target.split()
        number, gender = articles[first]
        assert verb == ("è", "sono")[number]
        assert source.split()[-2:-1] == [("is", "are")[number]]
        assert ending == predicates[source.split()[-1]][number][gender]
    first_words = {(noun.gender, word) for noun in PEOPLE + THINGS + PLACES for word in noun.italian}
    first_words |= {(gender, word) for one in FIRST for forms in one.italian for gender, word in enumerate(forms)}
    other_articles = ("[aeiouxyz]|gn|p[ns]|s[^aeiou]", "[aeiou]")  # lo, gli and l'
    assert [word for gender, word in first_words if re.match(other_articles[gender], word)] == []


def test_every_locale_is_one_that_babel_has() -> None:
    seen = {source.split()[0] for source, _ in task_pairs("locales", "train", count=2_000)}
    assert seen == set(LOCALES)


def test_few_digits_come_as_often_as_many_until_they_run_out() -> None:
    digits = Counter(len(source) for source, _ in task_pairs("numbers", "train", count=5_000))
    assert sum(digits.values()) == 5_000
    assert digits[1] <= 10
    assert min(digits[length] for length in (4, 5, 6)) > 0.8 * max(digits[length] for length in (4, 5, 6))


@pytest.mark.parametrize(("task", "library"), [("numbers", "inflect"), ("locales", "babel.dates")])
def test_without_its_library_a_task_names_the_extra(task: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        MissingExtraError,
        match=rf"\"{task}\" .*'allyouneed\[tasks\]'",
    ):
        task_pairs(task, "test", count=1)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_recipe_that_reads_it(task: str) -> None:
    recipe = Recipe.read(recipe_path(task))
    assert (recipe.data.train, recipe.data.valid, recipe.data.test) == tuple(f"{task}:{split}" for split in SPLITS)
