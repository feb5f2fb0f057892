from pathlib import Path

import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.errors import DataError
from allyouneed.nn import Transformer
from allyouneed.train.averaging import (
    average_snapshots,
    average_weights,
    copy_weights,
    remove_snapshots,
    save_snapshot,
    swapped_weights,
    update_ema,
)

TABLE = "source_embedding.table"


def test_the_mean_of_snapshots(config: ModelConfig, tmp_path: Path) -> None:
    model = Transformer(config)
    with torch.no_grad():
        for step, value in enumerate((1.0, 2.0, 6.0, 100.0), start=1):
            model.source_embedding.table.fill_(value)
            save_snapshot(tmp_path, model, step=step)
    mean = average_snapshots(tmp_path, [1, 2, 3])
    torch.testing.assert_close(mean[TABLE], torch.full((13, 12), 3.0))
    name = "encoder.layers.0.attention.query.weight"
    torch.testing.assert_close(mean[name], model.get_parameter(name))


def test_a_mean_is_summed_in_double_precision() -> None:
    models = [{"a": torch.tensor([number])} for number in (1e8, 1.0, -1e8)]
    torch.testing.assert_close(average_weights(models)["a"], torch.tensor([1 / 3]))


def test_a_snapshot_that_is_missing_or_damaged_is_refused(config: ModelConfig, tmp_path: Path) -> None:
    model = Transformer(config)
    save_snapshot(tmp_path, model, step=1)
    save_snapshot(tmp_path, model, step=2)
    path = tmp_path / "00000002.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"00000002.safetensors is damaged: its checksum does not match"):
        average_snapshots(tmp_path, [1, 2])
    remove_snapshots(tmp_path, keep=[1])
    assert [path.name for path in tmp_path.iterdir()] == ["00000001.safetensors"]
    with pytest.raises(DataError, match=r"00000002.safetensors is missing or damaged"):
        average_snapshots(tmp_path, [1, 2])


def test_the_running_mean_by_hand(config: ModelConfig) -> None:
    model = Transformer(config)
    with torch.no_grad():
        model.source_embedding.table.fill_(0.0)
        ema = copy_weights(model)
        model.source_embedding.table.fill_(11.0)
        update_ema(ema, model, decay=0.25, step=1)  # keeps (1 + 1) / (10 + 1), which is less than 0.25
        assert ema[TABLE][0, 0].item() == pytest.approx(9.0)
        update_ema(ema, model, decay=0.25, step=1_000)
        assert ema[TABLE][0, 0].item() == pytest.approx(0.25 * 9 + 0.75 * 11)


def test_a_model_gets_its_own_weights_back(config: ModelConfig) -> None:
    model = Transformer(config)
    original = model.source_embedding.table.detach().clone()
    zeros = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
    with swapped_weights(model, zeros):
        assert not model.source_embedding.table.any()
        assert model.projection.table is model.source_embedding.table
    assert torch.equal(model.source_embedding.table, original)
