from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.config import ModelConfig
from allyouneed.errors import ConfigError
from allyouneed.fast import quantization
from allyouneed.fast.fastest_way import FastestWay
from allyouneed.fast.quantization import Int8Linear, _operators_work, greatest_level, quantize, supports_int8
from allyouneed.fast.selection import make_engine, pick_precision
from allyouneed.nn import Transformer


def test_weights_are_rounded_to_the_nearest_of_255_steps_of_their_row() -> None:
    weight = torch.tensor([[1.27, -0.634, 0.0], [-254.0, 1.0, 3.1]])
    numbers, scale = quantize(weight)
    assert numbers.tolist() == [[127, -63, 0], [-127, 0, 2]]
    torch.testing.assert_close(scale, torch.tensor([0.01, 2.0]))


def test_a_row_of_zeros_stays_zero() -> None:
    numbers, scale = quantize(torch.zeros(2, 3))
    assert torch.equal(numbers * scale[:, None], torch.zeros(2, 3))


@pytest.mark.parametrize("rows", [1, 7, 71])
@pytest.mark.parametrize("biased", [True, False])
def test_it_is_the_product_of_rounded_weights_and_rounded_vectors(rows: int, biased: bool) -> None:
    weight, bias = torch.randn(400, 300), torch.randn(400) if biased else None
    x = torch.randn(rows, 300)
    numbers, scale = quantize(weight)
    low, high = x.amin(1, keepdim=True).clamp(max=0), x.amax(1, keepdim=True).clamp(min=0)
    step = (high - low) / greatest_level()
    expected = F.linear(low + step * ((x - low) / step + 0.5).floor(), numbers * scale[:, None], bias)
    assert (Int8Linear(weight, bias)(x) - expected).abs().max() < 0.001 * expected.std()
    assert (Int8Linear(weight, bias)(x) - F.linear(x, weight, bias)).std() < 0.02 * expected.std()


@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 70), st.integers(1, 140), st.sampled_from([-9, 0, 9]))
@settings(deadline=None, max_examples=60)
def test_a_row_becomes_the_same_in_any_company(seed: int, rows: int, deep: int, wide: int, middle: int) -> None:
    """To the bit, whichever kernel does it."""
    rng = torch.Generator().manual_seed(seed)
    x = (middle + torch.randn(rows, deep, generator=rng)) * 10 ** torch.randn(rows, 1, generator=rng)
    x[rows // 2] = 0
    quantized = Int8Linear(torch.randn(wide, deep, generator=rng), torch.randn(wide, generator=rng))
    together = quantized(x)
    order = torch.randperm(rows, generator=rng)
    with pytest.MonkeyPatch.context() as patch:
        for way in (quantization._sum_by_fbgemm, quantization._sum_by_onednn):
            patch.setattr(quantization, "_sum_products", FastestWay(way))
            assert torch.equal(quantized(x[order]), together[order])
            for row in range(rows):
                assert torch.equal(quantized(x[row : row + 1]), together[row : row + 1])


def test_it_needs_an_x86_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert supports_int8(torch.device("cpu"))
    assert not supports_int8(torch.device("meta"))
    monkeypatch.setattr("allyouneed.fast.quantization.supports_int8", lambda device: False)
    with pytest.raises(ConfigError, match='precision "int8" needs an x86 processor and the quantized operators'):
        Int8Linear(torch.randn(3, 3), None)


def removed(*_: Any) -> None:
    raise AttributeError("'_OpNamespace' 'quantized' object has no attribute 'linear_dynamic'")


@pytest.mark.parametrize("fault", [removed, lambda levels, *_: torch.zeros(1, 2)])
def test_without_the_quantized_operators_the_default_is_float32(
    config: ModelConfig, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    """They are gone, or give wrong results."""
    large = Transformer(replace(config, vocab_size=8_000, d_model=128, heads=2))
    assert pick_precision(large) == "int8"
    monkeypatch.setattr(torch.ops.quantized, "linear_dynamic", fault)
    _operators_work.cache_clear()
    try:
        assert pick_precision(large) == "float32"
        with pytest.raises(ConfigError, match='where they do not work; use "float32" or compiled=True'):
            make_engine(large, precision="int8")
        make_engine(large, precision="int8", compiled=True).start(torch.tensor([[1, 2]]))  # its products are its own
    finally:
        _operators_work.cache_clear()
