"""The way of a GPU, on the CPU: nothing waits for the device, and an update that is not finite changes nothing."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.train import TrainState, make_optimizer, updates
from allyouneed.train.averaging import copy_weights, update_ema
from allyouneed.train.finite_updates import Outcome, skips_on_device, step_on_device
from allyouneed.train.loop import add_gradients
from allyouneed.train.packed_forward import packed_ahead
from allyouneed.train.state import MAX_SKIPPED_IN_A_ROW

SETTINGS = TrainConfig(steps=8, warmup=3, learning_rate=1 / 12, clip_norm=1.0)
BATCH = Batch(torch.tensor([[1, 5, 6, 2], [1, 4, 2, 0]]), torch.tensor([[1, 6, 5, 2], [1, 4, 2, 0]]))
GATES = ("loop", "finite_updates", "packed_forward")


@pytest.fixture
def as_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every device counts as one that the program does not wait for."""
    for module in GATES:
        monkeypatch.setattr(f"allyouneed.train.{module}.runs_ahead", lambda device: True)


@pytest.fixture
def plain(config: ModelConfig) -> ModelConfig:
    return replace(config, dropout=0.0)


def plant(model: Transformer, state: TrainState, *steps: int) -> None:
    """A gradient that is infinite in some updates."""
    model.get_parameter("encoder.layers.0.attention.query.weight").register_hook(  # type: ignore[no-untyped-call]
        lambda gradient: gradient * (float("inf") if state.step in steps else 1.0)
    )


def numbers(model: Transformer, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Copies of the weights, and of all that the optimizer keeps."""
    kept = [value for parameter in model.parameters() for value in optimizer.state[parameter].values()]
    return [tensor.detach().clone() for tensor in (*model.parameters(), *kept)]


@pytest.mark.parametrize("changes", [{}, {"optimizer": "adamw", "weight_decay": 0.1},
                                     {"optimizer": "muon", "learning_rate": 0.02},  # it rounds to bfloat16
                                     {"r_drop": 5.0}, {"accumulate_steps": 2}])  # fmt: skip
def test_the_losses_are_those_of_the_cpu(
    plain: ModelConfig, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, results = replace(SETTINGS, **changes), []  # type: ignore[arg-type]
    for on_gpu in (False, True):
        with monkeypatch.context() as patched:
            for module in GATES:
                patched.setattr(f"allyouneed.train.{module}.runs_ahead", lambda device, on_gpu=on_gpu: on_gpu)
            torch.manual_seed(0)
            model = Transformer(plain)
            done = updates(model, make_optimizer(model, settings), repeat(BATCH), settings)
            results.append([float(update.loss) for update in done])
    assert results[1] == pytest.approx(results[0], rel=1e-3)
    assert results[0][-1] != pytest.approx(results[0][0], rel=0.1)


@pytest.mark.usefixtures("as_a_gpu")
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_an_update_that_is_not_finite_changes_neither_weights_nor_state(plain: ModelConfig, optimizer: str) -> None:
    settings, state = replace(SETTINGS, optimizer=optimizer), TrainState()  # type: ignore[arg-type]
    model = Transformer(plain)
    steps = make_optimizer(model, settings)
    plant(model, state, 1, 4, 5)
    before: dict[int, list[Tensor]] = {0: [parameter.detach().clone() for parameter in model.parameters()]}
    skipped = []
    for update in updates(model, steps, repeat(BATCH), settings, state):
        before[update.step] = numbers(model, steps)
        skipped.append(update.skipped)
    for step in (4, 5):
        assert all(map(torch.equal, before[step], before[step - 1]))
    assert all(map(torch.equal, before[1], before[0]))
    assert not all(map(torch.equal, before[2], before[1]))
    assert all(tensor.isfinite().all() for tensors in before.values() for tensor in tensors)
    assert skipped == [True, False, False, True, True, False, False, False]


@pytest.mark.usefixtures("as_a_gpu")
def test_skipped_updates_are_counted_one_update_later(plain: ModelConfig) -> None:
    model, state, counts = Transformer(plain), TrainState(), []
    plant(model, state, 2, 3)
    for _ in updates(model, make_optimizer(model, SETTINGS), repeat(BATCH), SETTINGS, state):
        counts.append((state.skipped, state.skipped_in_a_row))
    assert counts == [(0, 0), (0, 0), (1, 1), (2, 2), (2, 0), (2, 0), (2, 0), (2, 0)]
    plant(model, state, 9)
    list(updates(model, make_optimizer(model, SETTINGS), repeat(BATCH), replace(SETTINGS, steps=9), state))
    assert (state.skipped, len(state.outcomes)) == (2, 1)
    state.count_outcomes()
    assert (state.skipped, state.skipped_in_a_row, len(state.outcomes)) == (3, 1, 0)


def test_five_in_a_row_are_seen_also_where_a_finite_one_follows_before_the_count() -> None:
    state = TrainState()
    state.outcomes = [Outcome(torch.tensor(finite)) for finite in [False] * MAX_SKIPPED_IN_A_ROW + [True]]
    state.count_outcomes()
    assert state.skipped_in_a_row == MAX_SKIPPED_IN_A_ROW
    state.count_outcomes()
    assert (state.skipped, state.skipped_in_a_row) == (MAX_SKIPPED_IN_A_ROW, 0)


def test_an_optimizer_that_cannot_skip_on_the_device_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.train.finite_updates.runs_ahead", lambda device: True)
    weights = [torch.nn.Parameter(torch.ones(2))]
    cpu = torch.device("cpu")
    assert not skips_on_device(torch.optim.SGD(weights, lr=0.1, fused=False), cpu)
    assert skips_on_device(torch.optim.Adam(weights, lr=0.1, fused=True), cpu)
    monkeypatch.undo()
    assert not skips_on_device(torch.optim.Adam(weights, lr=0.1, fused=True), cpu)  # reading costs a CPU nothing


def test_a_step_leaves_no_sign_for_the_next() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([weight], lr=0.1, fused=True)
    weight.grad = torch.ones(2)
    step_on_device(optimizer, torch.tensor(False))
    assert weight.tolist() == [1, 1]
    optimizer.step()
    assert weight.tolist() == pytest.approx([0.9, 0.9])


@pytest.mark.usefixtures("as_a_gpu")
@pytest.mark.parametrize("changes", [{}, {"optimizer": "muon"}, {"r_drop": 5.0}])
def test_no_update_reads_a_number_from_the_device(
    plain: ModelConfig, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors of the device "meta" have no numbers: reading one, or choosing rows by a mask, fails."""

    class Unread(Outcome):
        def __init__(self, is_finite: Tensor) -> None:
            assert is_finite.is_meta
            self.is_finite = is_finite

        def read(self) -> bool:
            return True

    monkeypatch.setattr("allyouneed.train.loop.Outcome", Unread)
    monkeypatch.setattr("allyouneed.train.optimizer.adam_update", lambda *tensors, **options: None)
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    model = Transformer(plain).to("meta")
    optimizer = make_optimizer(model, settings)
    if settings.optimizer == "adam":  # its kernel exists for real devices only
        monkeypatch.setattr(optimizer, "step", lambda: None)
    done = list(updates(model, optimizer, packed_ahead(repeat(BATCH), model, settings), settings))
    assert len(done) == settings.steps
    assert all(update.loss.is_meta and update.gradient_norm.is_meta for update in done)


def test_the_padded_pass_does_read_some(plain: ModelConfig) -> None:
    """What the test above would see."""
    model = Transformer(plain).to("meta")
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        add_gradients(model, [BATCH], SETTINGS)


@pytest.mark.usefixtures("as_a_gpu")
def test_batches_that_are_packed_ahead_are_the_same(plain: ModelConfig) -> None:
    model = Transformer(plain)
    made: Iterator[Batch] = iter([BATCH] * 3)
    ahead = list(packed_ahead(made, model, SETTINGS))
    assert [batch.source.tolist() for batch in ahead] == [BATCH.source.tolist()] * 3
    results = []
    for batch in (BATCH, ahead[0]):
        model.zero_grad()
        loss = add_gradients(model, [batch], SETTINGS)
        results.append([loss, *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)
    assert ahead[0].packed is not None


@pytest.mark.usefixtures("as_a_gpu")
def test_memory_that_runs_out_splits_packed_batches_too(plain: ModelConfig) -> None:
    results = []
    for parts in (1, 2):
        torch.manual_seed(0)
        model = Transformer(plain)
        loss = add_gradients(model, [BATCH], SETTINGS, micro_batches=parts)
        results.append((loss, [parameter.grad for parameter in model.parameters()]))
    torch.testing.assert_close(results[1], results[0])


def test_the_moving_average_stays_where_the_weights_did(plain: ModelConfig) -> None:
    model = Transformer(plain)
    averages = {name: torch.zeros_like(tensor) for name, tensor in copy_weights(model).items()}
    update_ema(averages, model, decay=0.5, step=100, is_finite=torch.tensor(False))
    assert not any(tensor.any() for tensor in averages.values())
    update_ema(averages, model, decay=0.5, step=100, is_finite=torch.tensor(True))
    expected = {name: torch.zeros_like(tensor) for name, tensor in averages.items()}
    update_ema(expected, model, decay=0.5, step=100)
    torch.testing.assert_close(averages, expected)
