from typing import Literal

import pytest
import torch

from allyouneed.nn import FeedForward


def test_equation_2() -> None:
    ffn = FeedForward(d_model=3, d_ff=5)
    x = torch.randn(2, 4, 3)
    hidden = torch.clamp(x @ ffn.inner.weight.T + ffn.inner.bias, min=0)
    torch.testing.assert_close(ffn(x), hidden @ ffn.outer.weight.T + ffn.outer.bias)


def test_every_position_is_on_its_own() -> None:
    ffn = FeedForward(d_model=3, d_ff=5)
    x = torch.randn(1, 4, 3)
    torch.testing.assert_close(ffn(x)[:, 2:3], ffn(x[:, 2:3]))


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_activations(activation: Literal["relu", "gelu", "silu"]) -> None:
    ffn = FeedForward(d_model=3, d_ff=5, activation=activation)
    x = torch.randn(2, 4, 3)
    torch.testing.assert_close(ffn(x), ffn.outer(getattr(torch.nn.functional, activation)(ffn.inner(x))))
