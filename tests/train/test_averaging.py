from pathlib import Path

import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.errors import DataError
from allyouneed.nn import Transformer
from allyouneed.train.averaging import (
    ExponentialMovingAverage,
    average_snapshots,
    save_snapshot,
    snapshots,
    swapped_weights,
)

TABLE = "source_embedding.table"


def test_the_mean_of_snapshots(config: ModelConfig, tmp_path: Path) -> None:
    model = Transformer(config)
    with torch.no_grad():
        for step, value in enumerate((1.0, 2.0, 6.0, 100.0), start=1):
            model.source_embedding.table.fill_(value)
            save_snapshot(tmp_path, model, step=step)
    mean = average_snapshots(snapshots(tmp_path, until=3))
    torch.testing.assert_close(mean[TABLE], torch.full((13, 12), 3.0))
    name = "encoder.layers.0.attention.query.weight"
    torch.testing.assert_close(mean[name], model.get_parameter(name))


def test_snapshots_are_sorted_by_number(tmp_path: Path) -> None:
    steps = (5, 100_000_000, 99_999_999, 20)
    for step in steps:
        (tmp_path / f"{step:08d}.safetensors").touch()
    assert [int(path.stem) for path in snapshots(tmp_path, until=10**9)] == sorted(steps)
    with pytest.raises(DataError, match="is no snapshot"):
        average_snapshots(snapshots(tmp_path, until=20))


def test_the_running_mean_by_hand(config: ModelConfig) -> None:
    model = Transformer(config)
    with torch.no_grad():
        model.source_embedding.table.fill_(0.0)
        mean = ExponentialMovingAverage(model, decay=0.25)
        model.source_embedding.table.fill_(11.0)
        mean.update(model, step=1)  # keeps (1 + 1) / (10 + 1), which is less than 0.25
        assert mean.tensors[TABLE][0, 0].item() == pytest.approx(9.0)
        mean.update(model, step=1_000)
        assert mean.tensors[TABLE][0, 0].item() == pytest.approx(0.25 * 9 + 0.75 * 11)


def test_a_model_gets_its_own_weights_back(config: ModelConfig) -> None:
    model = Transformer(config)
    own = model.source_embedding.table.detach().clone()
    zeros = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
    with swapped_weights(model, zeros):
        assert not model.source_embedding.table.any()
        assert model.projection.table is model.source_embedding.table
    assert torch.equal(model.source_embedding.table, own)
