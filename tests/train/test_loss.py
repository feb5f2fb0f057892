import math

import pytest
import torch
import torch.nn.functional as F

from allyouneed.train import fused_linear_cross_entropy, mean_loss, smoothed_cross_entropy, symmetric_kl


def test_without_smoothing_it_is_the_surprise_at_the_target() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    loss = smoothed_cross_entropy(logits, torch.tensor([1]), smoothing=0.0)
    torch.testing.assert_close(loss, torch.tensor([math.log(4)]))


def test_smoothing_by_hand() -> None:
    # ε = 0.3 over three words: the target has 0.8, the others 0.1 each.
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    loss = smoothed_cross_entropy(logits, torch.tensor([0]), smoothing=0.3)
    torch.testing.assert_close(loss, torch.tensor([0.8 * math.log(2) + 0.2 * math.log(4)]))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_fused_kernel_equals_the_definition_and_leaves_padding_out(smoothing: float) -> None:
    logits, target = torch.randn(2, 5, 7), torch.tensor([[3, 4, 1, 0, 0], [6, 2, 2, 5, 1]])
    defined = smoothed_cross_entropy(logits, target, smoothing=smoothing)[target != 0].mean()
    torch.testing.assert_close(mean_loss(logits, target, smoothing=smoothing, pad_id=0), defined)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_projected_loss_equals_the_definition_and_so_does_its_gradient(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.train.loss._block_sizes", lambda _: (7 * 11, 3 * 11))  # six rows, two
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


def test_disagreement_by_hand_and_against_pytorch() -> None:
    first, second = (torch.tensor(p).log() for p in ([0.5, 0.5], [0.25, 0.75]))
    torch.testing.assert_close(
        symmetric_kl(first, second), torch.tensor(0.25 * math.log(2) - 0.25 * math.log(2 / 3)) / 2
    )
    p, q = torch.randn(2, 3, 4, 9).log_softmax(-1)
    both = (F.kl_div(q, p, log_target=True, reduction="none") + F.kl_div(p, q, log_target=True, reduction="none")) / 2
    torch.testing.assert_close(symmetric_kl(p, q), both.sum(-1))


def test_the_projected_loss_of_r_drop_equals_the_definition_and_so_does_its_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("allyouneed.train.loss._block_sizes", lambda _: (7 * 11, 3 * 11))  # six rows, two
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
    monkeypatch.setattr("allyouneed.train.loss._block_sizes", lambda _: (32 * 50, 8 * 50))  # 32 rows, of 90
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
