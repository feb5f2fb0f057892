"""A model that can learn is seen to; one that cannot, or is taught the wrong thing, is found out."""

import pytest
import torch
from torch import Tensor, nn

from allyouneed.check import learning
from allyouneed.check.learning import a_batch_is_learned_by_heart, loss_starts_at_guessing
from allyouneed.check.result import Ids, random_ids
from allyouneed.config import ModelConfig
from allyouneed.data.batch import Batch
from allyouneed.decode import Hypothesis
from allyouneed.nn import Transformer


@pytest.fixture
def new() -> Transformer:
    return Transformer(
        ModelConfig(
            vocab_size=13, d_model=16, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.1
        )
    )


@pytest.fixture
def ids(new: Transformer) -> Ids:
    return random_ids(new.config, sos_id=1, eos_id=2, count=3)


def test_a_sound_model_starts_by_guessing_and_learns_by_heart(new: Transformer, ids: Ids) -> None:
    assert loss_starts_at_guessing(new, ids).passed
    assert [verdict.passed for verdict in a_batch_is_learned_by_heart(new, ids)] == [True, True]


def test_weights_of_a_wrong_scale_are_found(new: Transformer, ids: Ids) -> None:
    with torch.no_grad():
        new.projection.table.mul_(20)
    found = loss_starts_at_guessing(new, ids)
    assert not found.passed
    assert "wrong scale" in found.explanation


def test_gradients_that_reach_nothing_are_found(new: Transformer, ids: Ids) -> None:
    class Deaf(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.detach()

    new.projection.table = nn.Parameter(new.projection.table.clone(), requires_grad=False)
    new.decoder.norm = Deaf()
    by_heart, labels = a_batch_is_learned_by_heart(new, ids)
    assert by_heart.passed is False
    assert "gradients do not reach" in by_heart.explanation
    assert labels.passed is None


def test_steps_far_too_large_are_found(new: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "RATES", {50.0: 20})
    monkeypatch.setattr(learning, "UPDATES", 40)
    by_heart, _ = a_batch_is_learned_by_heart(new, ids)
    assert by_heart.passed is False
    assert "far too large" in by_heart.explanation


@pytest.mark.parametrize("shift", ["repeats its word", "skips a word"])
def test_shifted_labels_are_found(shift: str, new: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    def out(self: Batch) -> Tensor:
        if shift == "repeats its word":
            return self.target[:, :-1]
        return nn.functional.pad(self.target[:, 2:], (0, 1))

    monkeypatch.setattr(Batch, "target_out", property(out))
    by_heart, labels = a_batch_is_learned_by_heart(new, ids)
    assert by_heart.passed
    assert labels.passed is False
    assert "shifted" in labels.explanation


def test_a_slip_in_one_sentence_is_no_shift(new: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    written = [Hypothesis(target[1:-1], 0.0, 0.0) for target in ids.targets]
    monkeypatch.setattr(learning, "greedy_search", lambda *_, **__: [Hypothesis([5], 0.0, 0.0), *written[1:]])
    _, labels = a_batch_is_learned_by_heart(new, ids)
    assert labels.passed
    assert labels.explanation.startswith("2 of 3 ")
