import builtins
from collections import Counter
from typing import Any

import pytest

from allyouneed.config import Recipe
from allyouneed.corpus.dates import SPLITS
from allyouneed.corpus.tasks import LOCALES, TASKS, task_pairs, text_split
from allyouneed.errors import MissingExtraError
from allyouneed.recipes import recipe_path


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
    numbers = dict(task_pairs("numbers", "train", count=5_000))
    assert numbers["42"] == "forty-two"
    thousands = {source: target for source, target in numbers.items() if len(source) == 6 and source.endswith("000")}
    assert all(target.endswith("thousand") for target in thousands.values())
    german = [pair for pair in task_pairs("locales", "train", count=2_000) if pair[0].startswith("de ")]
    source, target = next(pair for pair in german if "-03-" in pair[0])
    assert target == f"{int(source[-2:])}. März {int(source[3:7])}"


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
    original = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == library:
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        MissingExtraError,
        match=rf"^the task \"{task}\" needs the extra \[tasks\].* pip install 'babel>=\S+' 'inflect>=",
    ):
        task_pairs(task, "test", count=1)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_recipe_that_reads_it(task: str) -> None:
    recipe = Recipe.read(recipe_path(task))
    assert (recipe.data.train, recipe.data.valid, recipe.data.test) == tuple(f"{task}:{split}" for split in SPLITS)
