"""The way of a GPU, on the CPU: nothing waits for the device, and an update that is not finite changes nothing."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.fast.packed import packed_loss
from allyouneed.fast.passes import choose_loss, made_ahead
from allyouneed.nn import Transformer
from allyouneed.train import add_gradients, updates
from allyouneed.train.averaging import copy_weights, update_ema
from allyouneed.train.optimizer import step_if
from allyouneed.younger.muon import build_optimizer
from pretended_gpu import GPU, pretend_gpu

SETTINGS = TrainConfig(steps=8, warmup=3, learning_rate=1 / 12, clip_norm=1.0)
BATCH = Batch(torch.tensor([[1, 5, 6, 2], [1, 4, 2, 0]]), torch.tensor([[1, 6, 5, 2], [1, 4, 2, 0]]))
PACKED = partial(add_gradients, loss_of=packed_loss)


def as_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every device count as one that the program does not wait for."""
    monkeypatch.setattr("allyouneed.train.optimizer.runs_ahead", lambda device: True)


@pytest.fixture
def plain(config: ModelConfig) -> ModelConfig:
    return replace(config, dropout=0.0)


def numbers(model: Transformer, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Copy the weights, and everything that the optimizer keeps."""
    kept = [value for parameter in model.parameters() for value in optimizer.state[parameter].values()]
    return [tensor.detach().clone() for tensor in (*model.parameters(), *kept)]


@pytest.mark.parametrize("changes", [{}, {"optimizer": "adamw", "weight_decay": 0.1},
                                     {"optimizer": "muon", "learning_rate": 0.02},  # it rounds to bfloat16
                                     {"r_drop": 5.0}, {"accumulate_steps": 2}])  # fmt: skip
def test_the_losses_are_those_of_the_cpu(
    plain: ModelConfig, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, results = replace(SETTINGS, **changes), []  # type: ignore[arg-type]
    batches = [BATCH] * settings.steps * settings.accumulate_steps
    for on_gpu in (False, True):
        if on_gpu:
            as_a_gpu(monkeypatch)
        torch.manual_seed(0)
        model = Transformer(plain)
        gradients = PACKED if on_gpu else add_gradients
        done = updates(model, build_optimizer(model, settings), batches, settings, gradients=gradients)
        results.append([float(update.loss) for update in done])
    assert results[1] == pytest.approx(results[0], rel=1e-3)
    assert results[0][-1] != pytest.approx(results[0][0], rel=0.1)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_an_update_that_is_not_finite_changes_neither_weights_nor_state(
    plain: ModelConfig, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_a_gpu(monkeypatch)
    settings = replace(SETTINGS, optimizer=optimizer)  # type: ignore[arg-type]
    model = Transformer(plain)
    steps = build_optimizer(model, settings)
    before: dict[int, list[Tensor]] = {0: [parameter.detach().clone() for parameter in model.parameters()]}

    def infinite_in_some(model: Transformer, batches: Sequence[Batch], config: TrainConfig) -> tuple[Tensor, Tensor]:
        loss, norm = PACKED(model, batches, config)
        return loss, norm * (float("inf") if len(before) in (1, 4, 5) else 1.0)

    finite = []
    for update in updates(model, steps, repeat(BATCH, 8), settings, gradients=infinite_in_some):
        before[update.step] = numbers(model, steps)
        finite.append(bool(update.is_finite))
    for step in (4, 5):
        assert all(map(torch.equal, before[step], before[step - 1]))
    assert all(map(torch.equal, before[1], before[0]))
    assert not all(map(torch.equal, before[2], before[1]))
    assert all(tensor.isfinite().all() for tensors in before.values() for tensor in tensors)
    assert finite == [False, True, True, False, False, True, True, True]


def test_an_optimizer_that_cannot_skip_on_the_device_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    as_a_gpu(monkeypatch)
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    for is_finite, expected in ((False, 1.0), (True, 0.9)):
        step_if(torch.tensor(is_finite), torch.optim.SGD([weight], lr=0.1, fused=False))
        assert weight.tolist() == pytest.approx([expected] * 2)


def test_a_step_leaves_no_sign_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    as_a_gpu(monkeypatch)
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weight], lr=0.1, fused=True)
    weight.grad = torch.ones(2)
    step_if(torch.tensor(False), optimizer)
    assert weight.tolist() == [1, 1]
    optimizer.step()
    assert weight.tolist() == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize(
    "changes", [{}, {"optimizer": "muon"}, {"r_drop": 5.0}, {"precision": "bfloat16", "accumulate_steps": 2}], ids=str
)
def test_no_update_waits_for_the_device(plain: ModelConfig, changes: dict[str, object]) -> None:
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    with pretend_gpu() as gpu:
        model = Transformer(plain).to(GPU)
        loss_of, reason = choose_loss(model, settings)
        assert (loss_of, reason) == (packed_loss, "")
        feed = made_ahead(repeat(BATCH, 20), loss_of, model, settings)
        gradients = partial(add_gradients, loss_of=loss_of)
        done = updates(model, build_optimizer(model, settings), feed, settings, gradients=gradients)
        next(done)  # it makes the optimizer's state
        gpu.waits.clear()
        losses = [update.loss for update in done]
        assert (len(losses), dict(gpu.waits)) == (7, {})
        assert all(loss.device == GPU for loss in losses)
        assert losses[-1].item() < losses[0].item()
        add_gradients(model, [BATCH], settings)  # the padded pass does wait
        assert gpu.waits.total() > 2


def test_the_moving_average_stays_where_the_weights_did(plain: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    model, results = Transformer(plain), []
    for on_gpu in (False, True):
        monkeypatch.setattr("allyouneed.train.averaging.runs_ahead", lambda device, on_gpu=on_gpu: on_gpu)
        averages = {name: torch.zeros_like(tensor) for name, tensor in copy_weights(model).items()}
        update_ema(averages, model, decay=0.5, step=100, is_finite=torch.tensor(False))
        assert not any(tensor.any() for tensor in averages.values())
        update_ema(averages, model, decay=0.5, step=100, is_finite=torch.tensor(True))
        results.append(averages)
    torch.testing.assert_close(results[1], results[0])
