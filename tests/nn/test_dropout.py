import pytest
import torch

from allyouneed.errors import ConfigError
from allyouneed.nn import PositionalEncoding, Residual
from allyouneed.nn.dropout import Dropout, keep_factors


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_a_share_p_becomes_zero_and_the_mean_stays(p: float) -> None:
    x = torch.ones(1_000, 999)  # no multiple of four
    y = Dropout(p).train()(x)
    zero = y == 0
    torch.testing.assert_close(zero.float().mean().item(), p, atol=2e-3, rtol=0)  # four standard deviations
    torch.testing.assert_close(y[~zero], torch.full_like(y[~zero], 1 / (1 - p)))
    torch.testing.assert_close(zero.float().mean(0), torch.full((999,), p), atol=0.08, rtol=0)
    torch.testing.assert_close(zero.float().mean(1), torch.full((1_000,), p), atol=0.08, rtol=0)


def test_each_number_is_dropped_by_itself() -> None:
    """Of neighbours, whose bits come from one draw, both are dropped as often as chance has it."""
    zero = ~keep_factors(torch.empty(250_000, 4), 0.5).bool()
    for i in range(4):
        for j in range(i):
            torch.testing.assert_close((zero[:, i] & zero[:, j]).float().mean().item(), 0.25, atol=4e-3, rtol=0)


def test_the_gradient_passes_where_the_number_does() -> None:
    x = torch.randn(7, 11, requires_grad=True)
    y = Dropout(0.4).train()(x)
    y.sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x.detach(), y.detach())


def test_without_training_or_without_p_nothing_changes() -> None:
    x = torch.randn(5, 3)
    assert Dropout(0.9).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_the_same_seed_drops_the_same() -> None:
    torch.manual_seed(3)
    once = keep_factors(torch.empty(5, 7), 0.3)
    torch.manual_seed(3)
    assert torch.equal(once, keep_factors(torch.empty(5, 7), 0.3))


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="dropout .*got 1"):
        Dropout(1.0)


def test_a_share_too_near_to_1_is_refused_and_the_next_is_kept_to() -> None:
    with pytest.raises(ConfigError, match=r"dropout .*2\*\*-16.*0\.9999923706"):
        Dropout(1 - 2**-17)
    assert keep_factors(torch.empty(2_000_000), 1 - 2**-16).count_nonzero() < 70  # 31 are expected


def test_no_part_takes_a_share_too_near_to_1() -> None:
    with pytest.raises(ConfigError, match="dropout"):
        Residual(d_model=4, dropout=1 - 2**-20, norm="pre")
    with pytest.raises(ConfigError, match="dropout"):
        PositionalEncoding(d_model=4, dropout=1 - 2**-20)
