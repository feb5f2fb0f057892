"""Three optimizers, one rate."""

import copy
import math
from dataclasses import replace
from itertools import repeat
from typing import Literal

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.nn import Transformer
from allyouneed.train import updates
from allyouneed.younger.muon import Muon, build_optimizer, newton_schulz

BATCH = Batch(torch.tensor([[1, 5, 6, 2], [1, 4, 2, 0]]), torch.tensor([[1, 6, 5, 2], [1, 4, 2, 0]]))


def inner_weight(model: Transformer) -> Tensor:
    return model.get_parameter("encoder.layers.0.feed_forward.inner.weight").detach()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adam", "adamw", "muon"])
def test_each_learns_a_batch_by_heart(config: ModelConfig, name: Literal["adam", "adamw", "muon"]) -> None:
    settings = TrainConfig(steps=150, warmup=50, learning_rate=0.02, label_smoothing=0.0, optimizer=name)
    model = Transformer(replace(config, dropout=0.0))
    losses = [float(done.loss) for done in updates(model, build_optimizer(model, settings), repeat(BATCH), settings)]
    assert losses[0] > 2.0
    assert losses[-1] < 0.05


@pytest.mark.parametrize("shape", [(3, 6, 6), (2, 4, 9), (2, 9, 4)])
def test_orthogonal_makes_all_singular_values_alike_and_turns_nothing(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(shape)
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    made = newton_schulz(matrices)
    stretched = u.mT @ made @ v.mT  # diagonal, if the singular vectors are the same
    values = torch.diagonal(stretched, dim1=-2, dim2=-1)
    assert ((values > 0.5) & (values < 1.3)).all()
    torch.testing.assert_close(stretched, torch.diag_embed(values), atol=1e-4, rtol=0)


def test_orthogonal_in_bfloat16_is_near_enough() -> None:
    matrices = torch.randn(3, 16, 24)
    values = torch.linalg.svdvals(newton_schulz(matrices.bfloat16()).float())
    assert ((values > 0.5) & (values < 1.3)).all()
    torch.testing.assert_close(newton_schulz(matrices.bfloat16()).float(), newton_schulz(matrices), atol=0.1, rtol=0)


def test_muon_takes_the_matrices_inside_the_layers_and_nothing_else(model: Transformer) -> None:
    matrices, others = Muon(model).param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    chosen = {names[id(parameter)] for parameter in matrices["params"]}
    assert chosen == {name for name in names.values() if ".layers." in name and name.endswith("weight")}
    assert len(matrices["params"]) + len(others["params"]) == len(names)


def test_muon_moves_a_matrix_by_a_fifth_of_the_rate_a_number(model: Transformer) -> None:
    before = inner_weight(model).clone()
    settings = TrainConfig(steps=1, schedule="constant", warmup=1, learning_rate=0.01, optimizer="muon")
    list(updates(model, build_optimizer(model, settings), repeat(BATCH), settings))
    root_mean_square = float((inner_weight(model) - before).square().mean().sqrt())
    assert 0.001 < root_mean_square < 0.003  # 0.2 · 0.01, with singular values of 0.7 to 1.2


def test_its_adam_is_torchs(config: ModelConfig) -> None:
    ours = Transformer(replace(config, dropout=0.0))
    adam = copy.deepcopy(ours)
    for model, name in ((ours, "muon"), (adam, "adam")):
        settings = TrainConfig(steps=1, warmup=1, optimizer=name)  # type: ignore[arg-type]
        list(updates(model, build_optimizer(model, settings), repeat(BATCH), settings))
    torch.testing.assert_close(ours.projection.table, adam.projection.table, rtol=0, atol=0)


def test_weight_decay_draws_matrices_towards_zero(model: Transformer) -> None:
    settings = TrainConfig(steps=1, schedule="constant", warmup=1, learning_rate=0.1, optimizer="muon")
    other = copy.deepcopy(model)
    for one, decay in ((model, 0.0), (other, 0.5)):
        decayed = replace(settings, weight_decay=decay)
        torch.manual_seed(1)
        list(updates(one, build_optimizer(one, decayed), repeat(BATCH), decayed))
    assert inner_weight(other).norm() < inner_weight(model).norm()


def test_two_steps_of_muon_are_those_of_its_definition(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.younger.muon.has_fast_bfloat16", lambda _: False)
    optimizer = Muon(model, weight_decay=0.25)
    optimizer.param_groups[0]["lr"] = 0.1
    matrix = model.get_parameter("encoder.layers.0.feed_forward.inner.weight")
    expected, mean = matrix.detach().clone(), torch.zeros_like(matrix)
    for gradient in torch.randn(2, *matrix.shape):
        matrix.grad = gradient.clone()
        optimizer.step()
        mean = 0.95 * mean + 0.05 * gradient
        ahead = 0.95 * mean + 0.05 * gradient
        scale = 0.2 * math.sqrt(20)  # the matrix is 20 × 12
        expected = expected * (1 - 0.1 * 0.25) - 0.1 * scale * newton_schulz(ahead[None])[0]
    torch.testing.assert_close(matrix.detach(), expected, atol=1e-5, rtol=0)


def test_muon_calls_no_closure(model: Transformer) -> None:
    with pytest.raises(NotImplementedError, match="closure"):
        Muon(model).step(lambda: 0.0)
