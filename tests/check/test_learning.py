"""A model that can learn is seen to; one that cannot, or is taught the wrong thing, is found out."""

import pytest
import torch
from torch import Tensor, nn

from allyouneed.apps.check import learning
from allyouneed.apps.check.learning import initial_loss_is_log_vocabulary, memorizes_a_batch
from allyouneed.apps.check.model import Ids, random_ids
from allyouneed.config import ModelConfig
from allyouneed.data.batch import Batch
from allyouneed.decode import Hypothesis
from allyouneed.nn import Transformer
from allyouneed.nn.module import Module


@pytest.fixture
def new() -> Transformer:
    return Transformer(
        ModelConfig(
            vocab_size=13, d_model=16, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.1
        )
    )


@pytest.fixture(params=[(3, 40), (2, 6)], ids=["three sentences", "two short ones, as for a large model"])
def ids(request: pytest.FixtureRequest, new: Transformer) -> Ids:
    count, long = request.param
    return random_ids(new.config, sos_id=1, eos_id=2, count=count, long=long)


def test_a_sound_model_starts_by_guessing_and_learns_memorized(new: Transformer, ids: Ids) -> None:
    assert initial_loss_is_log_vocabulary(new, ids).passed
    assert [verdict.passed for verdict in memorizes_a_batch(new, ids)] == [True, True]


def test_weights_of_a_wrong_scale_are_found(new: Transformer, ids: Ids) -> None:
    with torch.no_grad():
        new.projection.table.mul_(20)
    outcome = initial_loss_is_log_vocabulary(new, ids)
    assert not outcome.passed
    assert "wrong scale" in outcome.explanation


def test_gradients_that_reach_nothing_are_found(new: Transformer, ids: Ids) -> None:
    class Deaf(Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.detach()

    new.projection.table = nn.Parameter(new.projection.table.clone(), requires_grad=False)
    new.decoder.norm = Deaf()
    memorized, labels = memorizes_a_batch(new, ids)
    assert memorized.passed is False
    assert "gradients" in memorized.explanation
    assert labels.passed is None


def test_steps_far_too_large_are_found(new: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "memorizing_learning_rate", lambda config: 50.0)
    memorized, _ = memorizes_a_batch(new, ids)
    assert memorized.passed is False
    assert "training diverges" in memorized.explanation


@pytest.mark.parametrize("shift", ["repeats its word", "skips a word"])
def test_shifted_labels_are_found(shift: str, new: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    def out(self: Batch) -> Tensor:
        if shift == "repeats its word":
            return self.target[:, :-1]
        return nn.functional.pad(self.target[:, 2:], (0, 1))

    monkeypatch.setattr(Batch, "target_out", property(out))
    memorized, labels = memorizes_a_batch(new, ids)
    assert memorized.passed
    assert labels.passed is False
    assert "shifted" in labels.explanation


def test_a_slip_in_one_sentence_is_no_shift(new: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    written = [Hypothesis(target[1:-1], 0.0, 0.0) for target in ids.targets]
    monkeypatch.setattr(learning, "greedy_search", lambda *_, **__: [Hypothesis([5], 0.0, 0.0), *written[1:]])
    _, labels = memorizes_a_batch(new, ids)
    assert labels.passed
    count = len(ids.targets)
    assert f"writes {count - 1} of {count} memorized" in labels.explanation
