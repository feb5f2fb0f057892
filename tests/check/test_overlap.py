"""A test that was trained on is found, wherever its corpus is named."""

from pathlib import Path

import pytest

from allyouneed.apps.check.overlap import load_pairs, no_overlap
from allyouneed.config import Recipe
from allyouneed.data.pairs import Pair


def written(path: Path, numbers: range) -> str:
    path.write_text("".join(f"{i} dogs run\t{i} Hunde rennen\n" for i in numbers))
    return str(path)


def test_a_test_that_was_trained_on_is_found() -> None:
    train = [Pair(str(i), "x") for i in range(300)]
    fresh = [Pair(str(i), "y") for i in range(300)]
    assert no_overlap(train, fresh).passed
    assert no_overlap(train, fresh[1:] + train[:1]).passed
    result = no_overlap(train, fresh[:-9] + train[:9])
    assert result.passed is False
    assert "9 of 300 held-out pairs (3.00 %)" in result.explanation
    assert no_overlap(train, []).passed is None


@pytest.mark.parametrize(("overlap", "fine"), [("none", False), ("either", True)])
def test_every_corpus_counts_as_training_selects_it(overlap: str, fine: bool, tmp_path: Path) -> None:
    first, second = written(tmp_path / "a.tsv", range(100)), written(tmp_path / "b.tsv", range(100, 200))
    test = written(tmp_path / "test.tsv", range(150, 250))
    corpora = [{"train": first}, {"train": second, "test": test}]
    recipe = Recipe.from_tables({"data": {"corpus": corpora, "held_out": 0.1}, "clean": {"overlap": overlap}})
    train, held_out = load_pairs(recipe)
    result = no_overlap(train, held_out)
    assert result.passed is fine, result.explanation
    assert {pair.source for pair in held_out} > {f"{i} dogs run" for i in range(150, 250)}  # and a share of the rest


def test_the_share_that_is_held_out_is_found_again(tmp_path: Path) -> None:
    train, held_out = load_pairs(Recipe.from_tables({"data": {"train": written(tmp_path / "a.tsv", range(1_000))}}))
    assert len(train) + len(held_out) == 1_000
    assert 20 < len(held_out) < 70  # 2 % for validation, as many for a test
    assert no_overlap(train, held_out).passed


def test_the_test_of_a_task_counts() -> None:
    recipe = Recipe.from_tables(
        {
            "data": {
                "train": "sort:train",
                "test": "sort:test",
                "max_train_samples": 50,
                "max_valid_samples": 20,
                "held_out": 0,
            }
        }
    )
    _, held_out = load_pairs(recipe)
    assert len(held_out) == 20


@pytest.mark.parametrize("where", ["nowhere.tsv", "hf://somebody/something"])
def test_data_that_is_not_at_hand_is_not_looked_for(where: str) -> None:
    train, held_out = load_pairs(Recipe.from_tables({"data": {"train": where}}))
    assert no_overlap(train, held_out).explanation == "the data is not here"
    assert load_pairs(None) == ([], [])
