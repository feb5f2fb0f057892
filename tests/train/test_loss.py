import math

import pytest
import torch

from allyouneed.train import mean_loss, smoothed_cross_entropy


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
