import torch
from torch import nn

from allyouneed.nn import LayerNorm, Residual
from allyouneed.nn.residual import closing_norm


def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def test_post_normalises_the_sum() -> None:
    ring, x = Residual(d_model=4, dropout=0.0, norm="post"), torch.randn(2, 3, 4)
    torch.testing.assert_close(ring(x, double), ring.norm(3 * x))


def test_pre_normalises_what_the_sublayer_gets() -> None:
    ring, x = Residual(d_model=4, dropout=0.0, norm="pre"), torch.randn(2, 3, 4)
    torch.testing.assert_close(ring(x, double), x + 2 * ring.norm(x))


def test_dropout_falls_on_the_sublayer_only() -> None:
    ring, x = Residual(d_model=50, dropout=0.4, norm="pre"), torch.ones(2, 30, 50)
    changed = ring(x, torch.ones_like) - x
    assert 0.3 < (changed == 0).float().mean().item() < 0.5


def test_only_pre_ends_a_stack_with_a_norm() -> None:
    assert isinstance(closing_norm(d_model=4, norm="pre"), LayerNorm)
    assert isinstance(closing_norm(d_model=4, norm="post"), nn.Identity)
