"""Sharded training: the updates of one process, and checkpoints for another number of processes."""

import json
import signal
from functools import partial
from pathlib import Path

import pytest
import torch

from allyouneed import ConfigError, TrainConfig, Transformer
from allyouneed.bundle import Bundle
from allyouneed.errors import DataError
from allyouneed.run.sharded_checkpoint import load_sharded, newest_checkpoint
from allyouneed.train import make_optimizer
from allyouneed.train.workers import Workers
from ranks import run_ranks, run_torchrun, train_part
from sharded_ranks import save_troubled, train_and_be_killed, train_run


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process without sharding."""
    folder = tmp_path_factory.mktemp("straight")
    train_run(folder, sharding="none")
    return folder / "run"


def losses(folder: Path) -> list[float]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row[key] for row in rows for key in ("loss", "valid_loss")]


def assert_same_model(folder: Path, expected: Path) -> None:
    model, other = (Bundle.load(one).model.state_dict() for one in (folder, expected))
    for name, tensor in model.items():
        if not name.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone, which Adam enlarges
            assert (tensor - other[name]).abs().max() < 1e-3, name


@pytest.mark.parametrize("sharding", ["full", "none"])
def test_two_then_four_processes_then_one_continue_a_run_with_the_losses_of_one(
    straight: Path, tmp_path: Path, sharding: str
) -> None:
    for count, steps in ((2, 4), (4, 8), (1, 12)):
        assert run_torchrun(tmp_path, count, partial(train_run, steps=steps, sharding=sharding)) == [0] * count
        parts = (tmp_path / "run/checkpoints").glob("*/*.safetensors")
        assert len(list(parts)) == (count if sharding == "full" else 0)
    assert losses(tmp_path / "run") == pytest.approx(losses(straight), rel=1e-3)
    assert_same_model(tmp_path / "run", straight)


def test_products_in_bfloat16_change_the_losses_only_by_rounding(straight: Path, tmp_path: Path) -> None:
    assert run_torchrun(tmp_path, 2, partial(train_run, steps=4, precision="bfloat16")) == [0, 0]
    assert losses(tmp_path / "run") == pytest.approx(losses(straight)[:2], rel=0.01)


def test_a_worker_killed_while_a_checkpoint_is_written_leaves_the_one_before(straight: Path, tmp_path: Path) -> None:
    assert run_torchrun(tmp_path, 2, train_and_be_killed) == [1, -signal.SIGKILL]
    newest = newest_checkpoint(tmp_path / "run/checkpoints")
    assert newest
    assert json.loads((newest / "state.json").read_text())["state"]["step"] == 4
    assert run_torchrun(tmp_path, 2, train_run) == [0, 0]
    assert_same_model(tmp_path / "run", straight)
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == ["00000005"]

    (shard, *_) = (tmp_path / "run/checkpoints").glob("*/shard-00001*")
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    model = Transformer(Bundle.load(tmp_path / "run").model.config)
    data = json.loads((shard.parent / "state.json").read_text())["data"]
    with pytest.raises(DataError, match=r"shard-00001-.* is missing or has changed"):
        load_sharded(shard.parent, model, make_optimizer(model, TrainConfig()), data=data, workers=Workers())
    with pytest.raises(DataError, match="the data is not what .* was started with: x was None, is 1"):
        load_sharded(shard.parent, model, make_optimizer(model, TrainConfig()), data=data | {"x": 1}, workers=Workers())


def test_all_agree_on_memory_that_runs_out_in_either_pass_and_on_what_is_not_finite(tmp_path: Path) -> None:
    run_ranks(tmp_path, 2, save_troubled)
    expected, _ = train_part(Workers())
    first, raised, later = (False, 1, False), (False, 2, True), (False, 2, False)
    for rank in range(2):
        updates, losses_here = torch.load(tmp_path / f"{rank}.pt")
        assert updates == [first, raised, later, (False, 4, True), (False, 4, False), (True, 4, False)]
        assert losses_here[:5] == pytest.approx(expected[:5], rel=1e-5)


def test_a_moving_average_is_refused() -> None:
    with pytest.raises(ConfigError, match='with sharding = "full" set average_checkpoints instead'):
        TrainConfig(sharding="full", ema_decay=0.9, average_checkpoints=1)
