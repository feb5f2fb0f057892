import math

import pytest
import torch
import torch.nn.functional as F

from allyouneed.config import ModelConfig
from allyouneed.data.pairs import EncodedPairs, Side
from allyouneed.nn import Transformer
from allyouneed.train.validation import validate


def pairs(count: int) -> EncodedPairs:
    side = Side.from_sentences([[1, *([5, 6, 7] * (1 + i % 3)), 2] for i in range(count)])
    return EncodedPairs(source=side, target=side)


def test_a_model_that_knows_nothing_is_as_surprised_as_by_a_die(config: ModelConfig) -> None:
    model = Transformer(config)
    with torch.no_grad():
        model.projection.table.zero_()
    loss, right = validate(model, pairs(5), batch_tokens=20)
    assert abs(loss - math.log(config.vocab_size)) < 1e-5
    assert 0 <= right <= 100
    assert model.training


def test_batches_do_not_matter(config: ModelConfig) -> None:
    model = Transformer(config).eval()
    small, large = (validate(model, pairs(7), batch_tokens=size) for size in (12, 1_000))
    assert abs(small[0] - large[0]) < 1e-5
    assert small[1] == large[1]
    assert not model.training


def test_the_accuracy_counts_tokens_and_no_padding(config: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 5 5 2 and 5 6 5 5 2, a model that always says 5 has five of eight right, of the two padded ones none."""
    monkeypatch.setattr(Transformer, "forward", lambda self, source, target: F.one_hot(target * 0 + 5, 13).float())
    side = Side.from_sentences([[1, 5, 5, 2], [1, 5, 6, 5, 5, 2]])
    both = EncodedPairs(source=side, target=side)
    assert validate(Transformer(config), both, batch_tokens=100)[1] == 62.5
    monkeypatch.setattr(Transformer, "forward", lambda self, source, target: F.one_hot(target * 0, 13).float())
    assert validate(Transformer(config), both, batch_tokens=100)[1] == 0
