"""A model that can learn is seen to; one that cannot, or is taught the wrong thing, is found out."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from allyouneed.check.learning import a_batch_is_learned_by_heart, loss_starts_at_guessing
from allyouneed.check.verdict import Ids, random_ids
from allyouneed.config import ModelConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer

New = Callable[[], Transformer]


@pytest.fixture
def new() -> New:
    config = ModelConfig(
        vocab_size=13, d_model=32, d_ff=64, heads=2, encoder_layers=1, decoder_layers=1, max_length=17, dropout=0.1
    )

    def make() -> Transformer:
        torch.manual_seed(1)
        return Transformer(config)

    return make


@pytest.fixture
def ids(new: New) -> Ids:
    return random_ids(new().config, sos_id=1, eos_id=2, count=4)


def test_a_sound_model_starts_by_guessing_and_learns_by_heart(new: New, ids: Ids) -> None:
    assert loss_starts_at_guessing(new, ids).fine
    assert [verdict.fine for verdict in a_batch_is_learned_by_heart(new, ids)] == [True, True]


def test_weights_of_a_wrong_scale_are_found(new: New, ids: Ids) -> None:
    def loud() -> Transformer:
        model = new()
        with torch.no_grad():
            model.projection.table.mul_(20)
        return model

    found = loss_starts_at_guessing(loud, ids)
    assert not found.fine
    assert "wrong scale" in found.words


def test_gradients_that_reach_nothing_are_found(new: New, ids: Ids) -> None:
    class Deaf(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.detach()

    def deaf() -> Transformer:
        model = new()
        model.projection.table = nn.Parameter(model.projection.table.clone(), requires_grad=False)
        model.decoder.norm = Deaf()
        return model

    by_heart, labels = a_batch_is_learned_by_heart(deaf, ids)
    assert by_heart.fine is False
    assert "gradients do not reach" in by_heart.words
    assert labels.fine is None


@pytest.mark.parametrize("shift", ["repeats its word", "skips a word"])
def test_shifted_labels_are_found(shift: str, new: New, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    def out(self: Batch) -> Tensor:
        if shift == "repeats its word":
            return self.target[:, :-1]
        return nn.functional.pad(self.target[:, 2:], (0, 1))

    monkeypatch.setattr(Batch, "target_out", property(out))
    by_heart, labels = a_batch_is_learned_by_heart(new, ids)
    assert by_heart.fine
    assert labels.fine is False
    assert "shifted" in labels.words
