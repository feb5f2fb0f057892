from dataclasses import replace
from itertools import repeat

import torch

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.train import Update, make_optimizer, paper_rate, train

CONFIG = TrainConfig(steps=5, warmup=3, rate=0.5, label_smoothing=0.0)
BATCH = Batch(torch.tensor([[1, 5, 6, 2], [1, 4, 2, 0]]), torch.tensor([[1, 6, 5, 2], [1, 4, 2, 0]]))


def updates(config: ModelConfig, train_config: TrainConfig) -> list[Update]:
    told: list[Update] = []
    model = Transformer(config)
    train(model, make_optimizer(model, TrainConfig()), repeat(BATCH), train_config, after=told.append)
    return told


def test_each_update_is_told_with_its_rate(config: ModelConfig) -> None:
    told = updates(config, CONFIG)
    assert [update.step for update in told] == [1, 2, 3, 4, 5]
    assert [update.rate for update in told] == [0.5 * paper_rate(s, d_model=12, warmup=3) for s in range(1, 6)]
    assert all(update.tokens == 6 for update in told)


def test_one_batch_is_learned_by_heart(config: ModelConfig) -> None:
    told = updates(replace(config, dropout=0.0), replace(CONFIG, steps=150, warmup=50))
    assert told[0].loss > 2.0
    assert told[-1].loss < 0.05


def test_clipping_bounds_the_first_moment(config: ModelConfig) -> None:
    def largest_moment(clip_norm: float) -> float:
        torch.manual_seed(0)
        model = Transformer(config)
        optimizer = make_optimizer(model, TrainConfig())
        train(
            model,
            optimizer,
            repeat(BATCH),
            replace(CONFIG, steps=1, clip_norm=clip_norm),
            after=lambda _: None,
        )
        moments = [state["exp_avg"].norm() for state in optimizer.state.values()]
        return float(torch.stack(moments).norm())

    # After one update the first moment is a tenth of the gradient.
    assert largest_moment(0.0) > 0.02
    assert largest_moment(0.1) < 0.0101


def test_in_bfloat16_it_learns_too_and_the_weights_stay_float32(config: ModelConfig) -> None:
    told: list[Update] = []
    model = Transformer(replace(config, dropout=0.0))
    settings = replace(CONFIG, steps=150, warmup=50, precision="bfloat16")
    train(model, make_optimizer(model, settings), repeat(BATCH), settings, after=told.append)
    assert told[-1].loss < 0.05
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_going_on_begins_with_the_next_update(config: ModelConfig) -> None:
    told: list[Update] = []
    model = Transformer(config)
    train(model, make_optimizer(model, TrainConfig()), repeat(BATCH), CONFIG, after=told.append, first=4)
    assert [update.step for update in told] == [4, 5]
