from itertools import repeat

import pytest
import torch

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.run.estimate import format_duration, seconds_per_update
from allyouneed.train import make_optimizer

BATCH = Batch(torch.tensor([[1, 5, 6, 2]]), torch.tensor([[1, 6, 5, 2]]))


def test_measuring_changes_nothing(config: ModelConfig) -> None:
    model = Transformer(config)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    state = torch.get_rng_state()
    assert 0 < seconds_per_update(model, repeat(BATCH), TrainConfig(accumulate_steps=2), make_optimizer) < 5
    assert torch.equal(torch.get_rng_state(), state)
    for now, then in zip(model.parameters(), before, strict=True):
        assert torch.equal(now, then)
        assert now.grad is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(20, "20 seconds"), (600, "10 minutes"), (8_000, "2.2 hours"), (200_000, "2.3 days")]
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words
