from itertools import repeat
from pathlib import Path

import pytest
import torch
from torch.optim import Optimizer

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.errors import DataError
from allyouneed.nn import Transformer
from allyouneed.train import make_optimizer, train
from allyouneed.train.checkpoint import (
    average_checkpoints,
    checkpoint_path,
    checkpoints,
    load_checkpoint,
    save_checkpoint,
)

BATCH = Batch(torch.tensor([[1, 5, 6, 2]]), torch.tensor([[1, 6, 5, 2]]))


def trained(config: ModelConfig) -> tuple[Transformer, Optimizer]:
    model = Transformer(config)
    optimizer = make_optimizer(model, TrainConfig())
    train(model, optimizer, repeat(BATCH), TrainConfig(steps=3, warmup=5), after=lambda _: None)
    return model, optimizer


def test_everything_comes_back(config: ModelConfig, tmp_path: Path) -> None:
    model, optimizer = trained(config)
    save_checkpoint(tmp_path / "3.safetensors", model, optimizer, step=3, fingerprint="data")
    drawn = torch.rand(5)

    other = Transformer(config)
    other_optimizer = make_optimizer(other, TrainConfig())
    assert load_checkpoint(tmp_path / "3.safetensors", other, other_optimizer, fingerprint="data") == 3
    assert torch.equal(torch.rand(5), drawn)
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)
        for key, value in optimizer.state[ours].items():
            assert torch.equal(value, other_optimizer.state[theirs][key])


def test_the_mean_of_checkpoints(config: ModelConfig, tmp_path: Path) -> None:
    model, optimizer = trained(config)
    with torch.no_grad():
        for step, value in enumerate((1.0, 2.0, 6.0), start=1):
            model.source_embedding.table.fill_(value)
            save_checkpoint(checkpoint_path(tmp_path, step), model, optimizer, step=step, fingerprint="")
    mean = average_checkpoints(checkpoints(tmp_path))
    torch.testing.assert_close(mean["source_embedding.table"], torch.full((13, 12), 3.0))
    torch.testing.assert_close(
        mean["encoder.layers.0.attention.query.weight"], model.get_parameter("encoder.layers.0.attention.query.weight")
    )


def test_checkpoints_are_sorted_by_number(tmp_path: Path) -> None:
    steps = (5, 100_000_000, 99_999_999, 20)
    for step in steps:
        checkpoint_path(tmp_path, step).touch()
    assert [int(path.stem) for path in checkpoints(tmp_path)] == sorted(steps)


def test_another_model_other_data_or_a_broken_file_are_refused(config: ModelConfig, tmp_path: Path) -> None:
    model, optimizer = trained(config)
    path = tmp_path / "1.safetensors"
    save_checkpoint(path, model, optimizer, step=1, fingerprint="these pairs")
    with pytest.raises(DataError, match="training pairs are not those"):
        load_checkpoint(path, model, optimizer, fingerprint="other pairs")
    small = Transformer(ModelConfig(vocab_size=13, d_model=4, d_ff=4, heads=1))
    with pytest.raises(DataError, match="is of another model"):
        load_checkpoint(path, small, make_optimizer(small, TrainConfig()), fingerprint="these pairs")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DataError, match="is no checkpoint"):
        load_checkpoint(path, model, optimizer, fingerprint="these pairs")
