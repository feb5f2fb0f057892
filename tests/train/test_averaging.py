import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.nn import Transformer
from allyouneed.train.averaging import average_weights, copy_weights, swapped_weights, update_ema

TABLE = "source_embedding.table"
FINITE = torch.tensor(True)


def test_a_mean_is_summed_in_double_precision() -> None:
    models = [{"a": torch.tensor([number])} for number in (1e8, 1.0, -1e8)]
    torch.testing.assert_close(average_weights(models)["a"], torch.tensor([1 / 3]))


def test_the_running_mean_by_hand(config: ModelConfig) -> None:
    model = Transformer(config)
    with torch.no_grad():
        model.source_embedding.table.fill_(0.0)
        ema = copy_weights(model)
        model.source_embedding.table.fill_(11.0)
        update_ema(ema, model, decay=0.25, step=1, is_finite=FINITE)  # keeps 2/11, which is less than 0.25
        assert ema[TABLE][0, 0].item() == pytest.approx(9.0)
        update_ema(ema, model, decay=0.25, step=1_000, is_finite=FINITE)
        assert ema[TABLE][0, 0].item() == pytest.approx(0.25 * 9 + 0.75 * 11)


def test_a_model_gets_its_own_weights_back(config: ModelConfig) -> None:
    model = Transformer(config)
    original = model.source_embedding.table.detach().clone()
    zeros = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
    with swapped_weights(model, zeros):
        assert not model.source_embedding.table.any()
        assert model.projection.table is model.source_embedding.table
    assert torch.equal(model.source_embedding.table, original)
