import pytest
import torch
import torch.nn.functional as F

from allyouneed.fast.loss import fused_linear_cross_entropy
from allyouneed.train import mean_loss, smoothed_cross_entropy, symmetric_kl


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_projected_loss_equals_the_definition_and_so_does_its_gradient(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.fast.loss._block_sizes", lambda _: (7 * 11, 3 * 11))  # six rows, two
    vectors = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    table = torch.randn(11, 7, dtype=torch.float64, requires_grad=True)
    target = torch.randint(1, 11, (3, 5))
    target[0, 3:] = 0

    defined = smoothed_cross_entropy(vectors @ table.T, target, smoothing=smoothing)[target != 0].mean()
    loss = fused_linear_cross_entropy(vectors, table, target, smoothing=smoothing, pad_id=0, dtype=torch.float64)
    torch.testing.assert_close(loss.double(), defined, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        torch.autograd.grad(2 * loss, (vectors, table)), torch.autograd.grad(2 * defined, (vectors, table)),
        rtol=1e-5, atol=1e-6,
    )  # fmt: skip


def test_the_projected_loss_of_r_drop_equals_the_definition_and_so_does_its_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("allyouneed.fast.loss._block_sizes", lambda _: (7 * 11, 3 * 11))  # six rows, two
    vectors = torch.randn(6, 5, 7, dtype=torch.float64, requires_grad=True)
    table = torch.randn(11, 7, dtype=torch.float64, requires_grad=True)
    target = torch.randint(1, 11, (3, 5)).repeat(2, 1)
    target[[0, 3], 3:] = 0

    logits = vectors @ table.T
    words = (target != 0)[:3]
    apart = symmetric_kl(*logits.log_softmax(-1).chunk(2))[words].mean()
    defined = smoothed_cross_entropy(logits, target, smoothing=0.1)[target != 0].mean() + 5 / 2 * apart
    loss = fused_linear_cross_entropy(vectors, table, target, smoothing=0.1, pad_id=0, r_drop=5.0, dtype=torch.float64)
    torch.testing.assert_close(loss.double(), defined, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        torch.autograd.grad(2 * loss, (vectors, table)), torch.autograd.grad(2 * defined, (vectors, table)),
        rtol=1e-5, atol=1e-6,
    )  # fmt: skip


def test_a_word_with_no_chance_at_all_still_has_a_finite_loss() -> None:
    vectors, table = torch.tensor([[[300.0]]]), torch.tensor([[1.0], [0.0], [-1.0]])
    loss = fused_linear_cross_entropy(vectors, table, torch.tensor([[2]]), smoothing=0.0, pad_id=0)
    torch.testing.assert_close(loss, torch.tensor(600.0))


def test_in_bfloat16_it_is_the_same_to_two_digits() -> None:
    vectors, table, target = torch.randn(2, 9, 16), torch.randn(50, 16) / 4, torch.randint(1, 50, (2, 9))
    exact, rough = (
        fused_linear_cross_entropy(vectors, table, target, smoothing=0.1, pad_id=0, dtype=dtype)
        for dtype in (torch.float32, torch.bfloat16)
    )
    torch.testing.assert_close(rough, exact, rtol=1e-2, atol=0)
    assert rough != exact


def test_in_bfloat16_the_gradients_of_several_blocks_are_the_same_to_two_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("allyouneed.fast.loss._block_sizes", lambda _: (32 * 50, 8 * 50))  # 32 rows, of 90
    inputs, target = (torch.randn(2, 45, 16), torch.randn(50, 16) / 4), torch.randint(1, 50, (2, 45))
    gradients = []
    for dtype in (torch.float32, torch.bfloat16):
        vectors, table = (tensor.clone().requires_grad_() for tensor in inputs)
        loss = fused_linear_cross_entropy(vectors, table, target, smoothing=0.1, pad_id=0, dtype=dtype)
        gradients.append(torch.autograd.grad(loss, (vectors, table)))
    for exact, rough in zip(*gradients, strict=True):
        assert (rough - exact).norm() < 0.02 * exact.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_projected_loss_with_a_bias_equals_the_definition_and_so_do_its_gradients(smoothing: float) -> None:
    torch.manual_seed(1)
    inputs = [torch.randn(2, 5, 7), torch.randn(11, 7), torch.randn(11)]
    target = torch.randint(1, 11, (2, 5))
    target[1, 3:] = 0
    hidden_states, table, bias = (tensor.clone().requires_grad_() for tensor in inputs)
    expected = mean_loss(F.linear(hidden_states, table, bias), target, smoothing=smoothing, pad_id=0)
    gradients = torch.autograd.grad(expected, (hidden_states, table, bias))
    hidden_states, table, bias = (tensor.clone().requires_grad_() for tensor in inputs)
    fused = fused_linear_cross_entropy(hidden_states, table, target, bias=bias, smoothing=smoothing, pad_id=0)
    torch.testing.assert_close(fused, expected)
    for one, other in zip(torch.autograd.grad(fused, (hidden_states, table, bias)), gradients, strict=True):
        torch.testing.assert_close(one, other)
