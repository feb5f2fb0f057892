import math

import pytest
import torch
import torch.nn.functional as F

from allyouneed.train import mean_loss, smoothed_cross_entropy, symmetric_kl


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
def test_padding_is_left_out_and_the_mean_is_pytorchs(smoothing: float) -> None:
    logits, target = torch.randn(2, 5, 7), torch.tensor([[3, 4, 1, 0, 0], [6, 2, 2, 5, 1]])
    reference = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0, label_smoothing=smoothing)
    torch.testing.assert_close(mean_loss(logits, target, smoothing=smoothing, pad_id=0), reference)


def test_disagreement_by_hand_and_against_pytorch() -> None:
    first, second = (torch.tensor(p).log() for p in ([0.5, 0.5], [0.25, 0.75]))
    torch.testing.assert_close(
        symmetric_kl(first, second), torch.tensor(0.25 * math.log(2) - 0.25 * math.log(2 / 3)) / 2
    )
    p, q = torch.randn(2, 3, 4, 9).log_softmax(-1)
    both = (F.kl_div(q, p, log_target=True, reduction="none") + F.kl_div(p, q, log_target=True, reduction="none")) / 2
    torch.testing.assert_close(symmetric_kl(p, q), both.sum(-1))
