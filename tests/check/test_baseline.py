"""A vocabulary that loses text and a model that changed are found."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from allyouneed.apps.check.baseline import matches_baseline, save_baseline
from allyouneed.apps.check.round_trip import text_round_trips
from allyouneed.bundle import Bundle
from allyouneed.errors import BundleError, InputError
from allyouneed.text.backends import bpe_backend, word_backend
from allyouneed.text.tokenizer import Tokenizer


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
    assert re.search(r"; \d+ have a part that the vocabulary does not have$", result.explanation)


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
    assert "'abcj' is 'abc' after encoding and decoding" in result.explanation


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
    with pytest.raises(InputError, match="needs a text to translate"):
        save_baseline(bundle, tmp_path, [""])
    for content in ("[1]", "[" * 100_000):
        (tmp_path / "baseline.json").write_text(content)
        with pytest.raises(BundleError, match="not a list of translations; write it again with --save-baseline"):
            matches_baseline(bundle, tmp_path)
