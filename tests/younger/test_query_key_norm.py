from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from allyouneed.config import ModelConfig
from allyouneed.nn import MultiHeadAttention, Transformer, attention_weights
from allyouneed.younger import build_model
from allyouneed.younger.query_key_norm import EPS, QueryKeyNormAttention
from twins import scatter


@pytest.fixture(params=["sinusoidal", "rotary"])
def normed(request: pytest.FixtureRequest, config: ModelConfig) -> Transformer:
    model = build_model(replace(config, positions=request.param, query_key_norm=True)).eval()
    scatter(model)
    return model


def test_queries_and_keys_are_normalized_as_by_pytorch() -> None:
    attention, x = QueryKeyNormAttention(d_model=15, heads=3), torch.randn(2, 7, 15)
    scatter(attention)
    norms = [nn.RMSNorm(5, eps=EPS) for _ in range(2)]
    for norm, gain in zip(norms, (attention.query_gain, attention.key_gain), strict=True):
        norm.weight = gain
    queries, keys = (
        norm(linear(x).unflatten(-1, (3, 5)).transpose(1, 2))  # type: ignore[no-untyped-call]
        for norm, linear in zip(norms, (attention.query, attention.key), strict=True)
    )
    torch.testing.assert_close(attention.weights(x, x), attention_weights(queries, keys))


def test_larger_queries_and_keys_have_the_same_scores() -> None:
    attention, x = QueryKeyNormAttention(d_model=12, heads=3), torch.randn(2, 7, 12)
    before = attention.weights(x, x)
    with torch.no_grad():
        for linear in (attention.query, attention.key):
            linear.weight.mul_(100)
            linear.bias.mul_(100)
    torch.testing.assert_close(attention.weights(x, x), before, atol=1e-3, rtol=1e-3)


def test_steps_with_a_cache_equal_the_full_pass(normed: Transformer, source: Tensor, target: Tensor) -> None:
    full, memory, cache = normed(source, target), normed.encode(source), normed.new_cache()
    for position in range(target.size(1)):
        logits = normed.decode(target[:, position, None], memory, cache)
        torch.testing.assert_close(logits[:, 0], full[:, position])


def test_later_tokens_do_not_matter(normed: Transformer, source: Tensor, target: Tensor) -> None:
    changed = target.clone()
    changed[:, 2:] = 3
    torch.testing.assert_close(normed(source, changed)[:, :2], normed(source, target)[:, :2])


def test_self_attention_alone_has_it(normed: Transformer) -> None:
    parts = dict(normed.named_modules())
    kinds = {name: type(part) for name, part in parts.items() if isinstance(part, MultiHeadAttention)}
    assert {name for name, kind in kinds.items() if kind is MultiHeadAttention} == {
        name for name in kinds if name.endswith("cross_attention")
    }


def test_the_papers_model_has_none(config: ModelConfig) -> None:
    parts = list(build_model(config).modules())
    assert not any(isinstance(part, QueryKeyNormAttention) for part in parts)
    assert {type(part) for part in parts if isinstance(part, MultiHeadAttention)} == {MultiHeadAttention}
