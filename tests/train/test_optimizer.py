import pytest
import torch

from allyouneed.config import ModelConfig, TrainConfig
from allyouneed.errors import ConfigError
from allyouneed.nn import Transformer
from allyouneed.train import make_optimizer


def test_adam_is_the_papers(config: ModelConfig) -> None:
    (group,) = make_optimizer(Transformer(config), TrainConfig()).param_groups
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


def test_adamw_draws_every_weight_towards_zero_by_the_rate_times_the_decay(model: Transformer) -> None:
    optimizer = make_optimizer(model, TrainConfig(optimizer="adamw", weight_decay=0.25))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.step()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name] * (1 - 0.1 * 0.25))


def test_weight_decay_is_refused_where_it_would_do_nothing() -> None:
    with pytest.raises(ConfigError, match="weight_decay"):
        TrainConfig(weight_decay=0.1)


def test_an_optimizer_younger_than_the_paper_is_refused(model: Transformer) -> None:
    with pytest.raises(ConfigError, match="use allyouneed.younger.muon.build_optimizer"):
        make_optimizer(model, TrainConfig(optimizer="muon"))
