from itertools import repeat
from pathlib import Path

import pytest
import torch
from torch.optim import Optimizer

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.errors import DataError
from allyouneed.nn import Transformer
from allyouneed.run.checkpoint import (
    average_snapshots,
    load_checkpoint,
    remove_snapshots,
    save_checkpoint,
    save_snapshot,
)
from allyouneed.run.state import TrainState
from allyouneed.train import make_optimizer, updates

BATCH = Batch(torch.tensor([[1, 5, 6, 2]]), torch.tensor([[1, 6, 5, 2]]))
DATA = {"pairs": 7, "fingerprint": "abc"}


def trained(config: ModelConfig) -> tuple[Transformer, Optimizer]:
    model = Transformer(config)
    optimizer = make_optimizer(model, TrainConfig())
    list(updates(model, optimizer, repeat(BATCH), TrainConfig(steps=3, warmup=5)))
    return model, optimizer


def test_everything_comes_back(config: ModelConfig, tmp_path: Path) -> None:
    model, optimizer = trained(config)
    state = TrainState(
        step=3,
        seconds=1.5,
        learning_rate_factor=0.25,
        micro_batches=4,
        skipped=2,
        best=0.1,
        best_step=2,
        stopped_early=True,
        snapshots=[1, 2],
        losses=[torch.tensor(3.0), torch.tensor(2.0)],
        gradient_norms=[torch.tensor(0.5), torch.tensor(0.7)],
        ema={"x": torch.ones(2)},
    )
    save_checkpoint(tmp_path / "c", model, optimizer, state, data=DATA)
    drawn = torch.rand(5)

    other = Transformer(config)
    other_optimizer = make_optimizer(other, TrainConfig())
    back = load_checkpoint(tmp_path / "c", other, other_optimizer, data=DATA)
    assert back.scalars() == state.scalars()
    assert back.losses == state.losses
    assert back.gradient_norms == state.gradient_norms
    assert torch.equal(back.ema["x"], torch.ones(2))
    assert torch.equal(torch.rand(5), drawn)
    for ours, restored in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, restored)
        for key, value in optimizer.state[ours].items():
            assert torch.equal(value, other_optimizer.state[restored][key])


def test_another_model_other_data_or_a_broken_file_are_refused(config: ModelConfig, tmp_path: Path) -> None:
    model, optimizer = trained(config)
    path = tmp_path / "c"
    save_checkpoint(path, model, optimizer, TrainState(), data=DATA)
    with pytest.raises(DataError, match="pairs .*7, .*8; fingerprint"):
        load_checkpoint(path, model, optimizer, data={"pairs": 8, "fingerprint": "x"})
    small = Transformer(ModelConfig(vocab_size=13, d_model=4, d_ff=4, heads=1))
    with pytest.raises(DataError, match="another model"):
        load_checkpoint(path, small, make_optimizer(small, TrainConfig()), data=DATA)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DataError, match="damaged"):
        load_checkpoint(path, model, optimizer, data=DATA)


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
    with pytest.raises(DataError, match="00000002.safetensors .*checksum"):
        average_snapshots(tmp_path, [1, 2])
    remove_snapshots(tmp_path, keep=[1])
    assert [path.name for path in tmp_path.iterdir()] == ["00000001.safetensors"]
    with pytest.raises(DataError, match="00000002.safetensors"):
        average_snapshots(tmp_path, [1, 2])
