import pytest
import torch
from torch import nn

from allyouneed.errors import ConfigError
from allyouneed.fast.attention import fused_attention
from allyouneed.nn import MultiHeadAttention, attention_weights, causal_mask
from twins import same_attention, scatter

B, H, T, S, K = 2, 3, 5, 7, 11  # all different: no swapped axis survives


def test_every_axis_stays_apart() -> None:
    weights = attention_weights(torch.randn(B, H, T, K), torch.randn(B, H, S, K))
    assert weights.shape == (B, H, T, S)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T))


def test_equation_1_by_hand() -> None:
    # One query (2, 0) and keys (1, 0), (0, 1): scores 2/√2 and 0.
    query, key = torch.tensor([[[[2.0, 0.0]]]]), torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    first = torch.tensor(2.0**0.5).exp()
    torch.testing.assert_close(
        attention_weights(query, key).flatten(), torch.stack((first / (first + 1), 1 / (first + 1)))
    )


def test_what_may_not_be_looked_at_gets_no_weight() -> None:
    may_look = torch.rand(B, 1, T, S) > 0.5
    may_look[..., 0] = True
    weights = attention_weights(torch.randn(B, H, T, K), torch.randn(B, H, S, K), may_look)
    assert (weights[~may_look.expand_as(weights)] == 0).all()


@pytest.mark.parametrize("mask", ["none", "padding", "future", "nothing"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_fused_kernel_equals_the_definition(mask: str, dtype: torch.dtype) -> None:
    query, key = torch.randn(B, H, T, K, dtype=dtype), torch.randn(B, H, T, K, dtype=dtype)
    value = torch.randn(B, H, T, 13, dtype=dtype)
    may_look = {
        "none": None,
        "padding": torch.tensor([[True] * 5, [True, True, False, False, False]])[:, None, None],
        "future": causal_mask(T),
        "nothing": torch.zeros(B, 1, T, T, dtype=torch.bool),
    }[mask]
    fused = fused_attention(query, key, value, may_look)
    defined = attention_weights(query.double(), key.double(), may_look) @ value.double()
    if mask == "nothing" and dtype == torch.float16:  # so short a float cannot drown the scores, but it is no NaN
        assert fused.isfinite().all()
        return
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    torch.testing.assert_close(fused.double(), defined, atol=tolerance, rtol=0)


@pytest.mark.parametrize("mask", [torch.tensor(True), torch.arange(S) < 4, torch.ones(T, 1, dtype=torch.bool)])
def test_a_mask_of_fewer_dimensions_broadcasts(mask: torch.Tensor) -> None:
    part, query, key = MultiHeadAttention(d_model=12, heads=3), torch.randn(B, T, 12), torch.randn(B, S, 12)
    torch.testing.assert_close(part(query, key, key, mask), part(query, key, key, mask.expand(B, 3, T, S)))


def test_a_batch_may_have_no_sentences() -> None:
    x = torch.empty(0, T, 12)
    assert MultiHeadAttention(d_model=12, heads=3)(x, x, x).shape == (0, T, 12)


def test_a_query_that_may_look_at_nothing_spreads_evenly_and_is_no_nan() -> None:
    nothing = torch.zeros(1, 1, 1, S, dtype=torch.bool)
    weights = attention_weights(torch.randn(1, 1, 1, K), torch.randn(1, 1, S, K), nothing)
    torch.testing.assert_close(weights.flatten(), torch.full((S,), 1 / S))


@pytest.mark.parametrize("masked", [False, True])
def test_many_heads_equal_those_of_pytorch(masked: bool) -> None:
    ours = MultiHeadAttention(d_model=12, heads=3)
    reference = nn.MultiheadAttention(12, 3, batch_first=True)
    scatter(ours)
    same_attention(reference, ours)
    query, memory = torch.randn(B, T, 12), torch.randn(B, S, 12)
    real = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    expected, weights = reference(
        query, memory, memory, key_padding_mask=~real if masked else None, average_attn_weights=False
    )
    may_look = real[:, None, None] if masked else None
    torch.testing.assert_close(ours(query, memory, memory, may_look), expected)
    torch.testing.assert_close(ours.weights(query, memory, may_look), weights)


def test_heads_may_have_widths_of_their_own() -> None:
    attention = MultiHeadAttention(d_model=10, heads=3, d_k=4, d_v=5)
    assert attention(torch.randn(B, T, 10), torch.randn(B, S, 10), torch.randn(B, S, 10)).shape == (B, T, 10)
    assert attention.query.weight.shape == (12, 10)
    assert attention.value.weight.shape == (15, 10)


def test_dropout_falls_on_the_weights_in_training_only() -> None:
    attention = MultiHeadAttention(d_model=8, heads=2, dropout=0.5)
    x = torch.randn(2, 6, 8)
    assert not torch.equal(attention(x, x, x), attention(x, x, x))
    attention.eval()
    assert torch.equal(attention(x, x, x), attention(x, x, x))


def test_the_example_of_the_paper_base_model() -> None:
    attention = MultiHeadAttention(d_model=512, heads=8, dropout=0.1)
    x = torch.randn(2, 3, 512)
    assert attention(x, x, x).shape == (2, 3, 512)


def test_a_width_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ConfigError, match="d_model=10, heads=3"):
        MultiHeadAttention(d_model=10, heads=3)
