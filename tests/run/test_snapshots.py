from pathlib import Path

import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.errors import DataError
from allyouneed.nn import Transformer
from allyouneed.run.snapshots import average_snapshots, remove_snapshots, save_snapshot

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
