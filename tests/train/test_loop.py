from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.train import Update, add_gradients, make_optimizer, paper_learning_rate, symmetric_kl, updates
from allyouneed.train.gradients import WIDE, autocast_dtype

CONFIG = TrainConfig(steps=5, warmup=3, learning_rate=1 / 12, label_smoothing=0.0)
BATCH = Batch(torch.tensor([[1, 5, 6, 2], [1, 4, 2, 0]]), torch.tensor([[1, 6, 5, 2], [1, 4, 2, 0]]))


def trained(config: ModelConfig, train_config: TrainConfig) -> list[Update]:
    model = Transformer(config)
    return list(updates(model, make_optimizer(model, TrainConfig()), repeat(BATCH), train_config))


def test_each_update_is_yielded_with_its_learning_rate(config: ModelConfig) -> None:
    done = trained(config, CONFIG)
    assert [update.step for update in done] == [1, 2, 3, 4, 5]
    assert [update.learning_rate for update in done] == pytest.approx(
        [0.5 * paper_learning_rate(s, d_model=12, warmup=3) for s in range(1, 6)]  # (12 · 3)^−0.5 / 2 is 1/12
    )
    assert all(update.tokens == 6 for update in done)


def test_one_batch_is_learned_by_heart(config: ModelConfig) -> None:
    done = trained(replace(config, dropout=0.0), replace(CONFIG, steps=150, warmup=50, learning_rate=0.02))
    assert done[0].loss > 2.0
    assert done[-1].loss < 0.05


def test_clipping_bounds_the_first_moment(config: ModelConfig) -> None:
    def largest_moment(clip_norm: float) -> float:
        torch.manual_seed(0)
        model = Transformer(config)
        optimizer = make_optimizer(model, TrainConfig())
        next(updates(model, optimizer, repeat(BATCH), replace(CONFIG, clip_norm=clip_norm)))
        moments = [state["exp_avg"].norm() for state in optimizer.state.values()]
        return float(torch.stack(moments).norm())

    # After one update the first moment is a tenth of the gradient.
    assert largest_moment(0.0) > 0.02
    assert largest_moment(0.1) < 0.0101


def test_products_are_in_bfloat16_where_asked_for_or_where_that_is_faster(
    config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, wide = Transformer(config), Transformer(replace(config, d_model=WIDE, heads=2))
    for fast in (True, False):
        monkeypatch.setattr("allyouneed.train.gradients.has_fast_bfloat16", lambda device, fast=fast: fast)
        assert autocast_dtype("auto", small) == autocast_dtype("float32", wide) == torch.float32
        assert autocast_dtype("auto", wide) == (torch.bfloat16 if fast else torch.float32)
        assert autocast_dtype("bfloat16", small) == torch.bfloat16


def test_in_bfloat16_it_learns_too_and_the_weights_stay_float32(config: ModelConfig) -> None:
    model = Transformer(replace(config, dropout=0.0))
    settings = replace(CONFIG, steps=150, warmup=50, learning_rate=0.02, precision="bfloat16")
    done = list(updates(model, make_optimizer(model, settings), repeat(BATCH), settings))
    assert done[-1].loss < 0.05
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_r_drop_without_dropout_is_no_r_drop(config: ModelConfig) -> None:
    """Both predictions are then the same, so the loss and the gradients are those of one."""
    results = []
    for r_drop in (0.0, 5.0):
        torch.manual_seed(0)
        model = Transformer(replace(config, dropout=0.0))
        loss, _ = add_gradients(model, [BATCH], replace(CONFIG, r_drop=r_drop))
        results.append((loss, [parameter.grad for parameter in model.parameters()]))
    torch.testing.assert_close(results[1], results[0])


def test_r_drop_brings_the_predictions_under_dropout_together(config: ModelConfig) -> None:
    def apart(r_drop: float) -> float:
        torch.manual_seed(0)
        model = Transformer(replace(config, dropout=0.3))
        settings = replace(CONFIG, steps=60, warmup=30, learning_rate=0.02, r_drop=r_drop)
        list(updates(model, make_optimizer(model, settings), repeat(BATCH), settings))
        twice = model(*(side.repeat(50, 1) for side in (BATCH.source, BATCH.target_in))).log_softmax(-1).chunk(2)
        return symmetric_kl(*twice).mean().item()

    assert apart(5.0) < 0.5 * apart(0.0)


def test_accumulating_and_cutting_change_nothing_without_dropout(config: ModelConfig) -> None:
    """Two rows in one batch, as two batches that make one update, or as two pieces of one batch."""
    rows = [Batch(BATCH.source[i : i + 1], BATCH.target[i : i + 1]) for i in range(2)]
    results = []
    for group in ([BATCH], rows, BATCH.split(2)):
        torch.manual_seed(0)
        model = Transformer(replace(config, dropout=0.0))
        loss, _ = add_gradients(model, group, CONFIG)
        results.append((loss, [parameter.grad for parameter in model.parameters()]))
    for loss, gradients in results[1:]:
        torch.testing.assert_close(loss, results[0][0])
        torch.testing.assert_close(gradients, results[0][1])


def test_an_accumulated_update_takes_its_batches_from_the_feed(config: ModelConfig) -> None:
    model = Transformer(config)
    feed = iter([BATCH] * 7)
    settings = replace(CONFIG, accumulate_steps=3, steps=2)
    done = list(updates(model, make_optimizer(model, settings), feed, settings))
    assert [update.tokens for update in done] == [18, 18]
    assert len(list(feed)) == 1


def test_an_update_that_is_not_finite_is_skipped(config: ModelConfig) -> None:
    model, step, finite = Transformer(config), 1, []
    model.get_parameter("encoder.layers.0.attention.query.weight").register_hook(  # type: ignore[no-untyped-call]
        lambda gradient: gradient * (float("inf") if step in (2, 3) else 1.0)
    )
    for update in updates(model, make_optimizer(model, TrainConfig()), repeat(BATCH), CONFIG):
        step = update.step + 1
        finite.append(bool(update.is_finite))
        assert model.get_parameter("encoder.layers.0.attention.query.bias").grad is None
        if update.step == 1:
            before = [parameter.detach().clone() for parameter in model.parameters()]
        if update.step == 3:
            assert all(map(torch.equal, model.parameters(), before))
    assert finite == [True, False, False, True, True]
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_updates_are_counted_from_any_number_and_may_have_other_learning_rates(config: ModelConfig) -> None:
    model = Transformer(config)
    optimizer = make_optimizer(model, TrainConfig())
    done = list(updates(model, optimizer, repeat(BATCH), CONFIG, first=4, learning_rate=lambda step: step / 100))
    assert [(update.step, update.learning_rate) for update in done] == [(4, 0.04), (5, 0.05)]


def test_the_gradients_are_those_that_are_handed_in(config: ModelConfig) -> None:
    model = Transformer(config)

    def ones(model: Transformer, batches: Sequence[Batch], config: TrainConfig) -> tuple[Tensor, Tensor]:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        return torch.tensor(7.0), torch.tensor(1.0)

    before = model.projection.table.detach().clone()
    update = next(updates(model, torch.optim.SGD(model.parameters()), repeat(BATCH), CONFIG, gradients=ones))
    assert (float(update.loss), float(update.gradient_norm)) == (7.0, 1.0)
    torch.testing.assert_close(model.projection.table, before - update.learning_rate)
