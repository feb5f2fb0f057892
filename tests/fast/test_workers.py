"""Workers that divide a batch make the updates of one process."""

from pathlib import Path

import pytest
import torch

from allyouneed.config import TrainConfig
from allyouneed.fast.workers import Workers, divide, workers_here
from allyouneed.nn import Transformer
from allyouneed.younger.muon import build_optimizer
from ranks import MODEL, TRAININGS, run_ranks, save_trained, save_troubled, train_part


@pytest.mark.slow
def test_three_workers_make_the_updates_of_one(tmp_path: Path) -> None:
    """The third worker has no pair of most batches, and the weights are those of the first."""
    run_ranks(tmp_path, 3, save_trained)
    for name, rounding in (("adam", 1e-5), ("bfloat16", 2e-3)):
        losses, weights = train_part(Workers(), TRAININGS[name])
        for rank in range(3):
            losses_here, weights_here = torch.load(tmp_path / f"{name}{rank}.pt")
            assert losses_here == pytest.approx(losses, rel=rounding)
            for weight, tensor in weights.items():
                if not weight.endswith("key.bias"):  # softmax cancels it: its gradient is rounding alone
                    assert (weights_here[weight] - tensor).abs().max() < 10 * rounding, weight
    all_losses = [torch.load(tmp_path / f"muon{rank}.pt")[0] for rank in range(3)]
    assert all_losses == [all_losses[0]] * 3  # the same on every worker, to the bit


@pytest.mark.parametrize(
    ("environment", "here"),
    [
        ({}, 4),
        ({"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, 2),
        ({"WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}, 4),  # workers that one process of torchrun has started
    ],
)
def test_workers_of_several_machines_share_the_cores_of_their_own(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], here: int
) -> None:
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert workers_here(4) == here


def test_all_agree_on_a_gradient_that_is_not_finite_and_one_alone_splits_its_batches(tmp_path: Path) -> None:
    run_ranks(tmp_path, 2, save_troubled)
    finite = [True, False, True, True, True, True]
    for rank, parts in enumerate([[1] * 6, [1, 1, 1, 1, 2, 2]]):
        assert torch.load(tmp_path / f"{rank}.pt") == list(zip(finite, parts, strict=True))


def test_parameters_are_divided_so_that_all_have_about_the_same_work() -> None:
    for optimizer in ("adam", "muon"):
        model = Transformer(MODEL)
        parameters = list(model.parameters())
        owners = divide(build_optimizer(model, TrainConfig(optimizer=optimizer)), parameters, 2)
        sizes = [
            sum(p.numel() for p, owner in zip(parameters, owners, strict=True) if owner == rank) for rank in (0, 1)
        ]
        assert min(sizes) > 0.8 * max(sizes)
