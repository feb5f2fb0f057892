import pytest
import torch
from torch import nn

from allyouneed.nn import LayerNorm
from twins import same_norm, scatter


def formula(x: torch.Tensor, layer: LayerNorm) -> torch.Tensor:
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return layer.gain * (x - mean) / (variance + layer.eps).sqrt() + layer.bias


def test_by_hand() -> None:
    # Mean 2, biased variance 2/3: (1, 2, 3) becomes (−1, 0, 1) · √(3/2).
    normed = LayerNorm(3, eps=0.0)(torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(normed, torch.tensor([-1.0, 0.0, 1.0]) * 1.5**0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_the_formula_and_pytorchs(dtype: torch.dtype) -> None:
    ours, reference = LayerNorm(11).to(dtype), nn.LayerNorm(11).to(dtype)
    scatter(ours)
    same_norm(reference, ours)
    x = torch.randn(3, 5, 11, dtype=dtype) * 4 + 2
    torch.testing.assert_close(ours(x), reference(x))
    torch.testing.assert_close(formula(x, ours), reference(x))


def test_eps_stands_inside_the_root() -> None:
    constant = torch.full((4,), 3.0)
    constant[0] += 1e-3
    ours, reference = LayerNorm(4, eps=1e-2), nn.LayerNorm(4, eps=1e-2)
    torch.testing.assert_close(ours(constant), reference(constant))


def test_gradients_equal_those_of_the_definition() -> None:
    layer = LayerNorm(6).double()
    x = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    grads = torch.autograd.grad(layer(x).square().sum(), (x, layer.gain, layer.bias))
    defined = formula(x, layer).square().sum()
    for ours, reference in zip(grads, torch.autograd.grad(defined, (x, layer.gain, layer.bias)), strict=True):
        torch.testing.assert_close(ours, reference)
