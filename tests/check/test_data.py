"""A vocabulary that loses text and a model that changed are found."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from allyouneed.apps.check.data import load_pairs, matches_baseline, no_overlap, save_baseline, text_round_trips
from allyouneed.bundle import Bundle
from allyouneed.config import Recipe
from allyouneed.data.pairs import Pair
from allyouneed.errors import BundleError, InputError
from allyouneed.text.backends import bpe_backend, word_backend
from allyouneed.text.tokenizer import Tokenizer
from messages import numbers_in


@pytest.mark.parametrize(
    "tokenizer",
    [Tokenizer.characters("abc -"), Tokenizer(bpe_backend(["naïve café, 東京 1845"] * 3, vocab_size=280))],
    ids=["characters", "bpe"],
)
def test_a_sound_vocabulary_keeps_text(tokenizer: Tokenizer) -> None:
    result = text_round_trips([(tokenizer, ["a-b c"])])
    assert result.passed, result.explanation


def test_what_a_vocabulary_does_not_have_is_counted_and_no_fault() -> None:
    words = Tokenizer(word_backend(["the dog jumps"] * 3, vocab_size=6))
    letters = Tokenizer.characters("abc")
    result = text_round_trips([(words, ["the dog jumps", "jumps"]), (letters, ["abc", "abcd"])])
    assert result.passed, result.explanation
    assert numbers_in(result.explanation)[-1] >= 1


def test_a_vocabulary_that_has_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Tokenizer(word_backend(["the dog jumps"] * 3, vocab_size=6))
    monkeypatch.setattr(Tokenizer, "encode", lambda self, text: [self.sos_id, self.unk_id, self.eos_id])
    assert text_round_trips([(words, ["the dog jumps"])]).passed is False


def test_a_vocabulary_that_loses_text_is_found(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Tokenizer, ids: Sequence[int]) -> str:
        return "".join(self.pieces(i for i in ids if i < 9))

    monkeypatch.setattr(Tokenizer, "decode", forgetful)
    result = text_round_trips([(bundle.source_tokenizer, ["abcj"])])
    assert not result.passed
    assert "'abcj' is 'abc'" in result.explanation


def test_a_model_that_changed_is_found(bundle: Bundle, tmp_path: Path) -> None:
    assert matches_baseline(bundle, tmp_path).passed is None
    assert save_baseline(bundle, tmp_path, ["abc", "", "jj", "abc"]) == 2
    assert matches_baseline(bundle, tmp_path).passed
    with torch.no_grad():
        bundle.model.source_embedding.table.mul_(-1)
    result = matches_baseline(bundle, tmp_path)
    assert result.passed is False
    assert "'abc' was " in result.explanation


def test_nothing_to_remember_and_broken_probes_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        save_baseline(bundle, tmp_path, [""])
    for content in ("[1]", "[" * 100_000):
        (tmp_path / "baseline.json").write_text(content)
        with pytest.raises(BundleError, match="--save-baseline"):
            matches_baseline(bundle, tmp_path)


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
    assert no_overlap(train, held_out).passed is None
    assert load_pairs(None) == ([], [])
