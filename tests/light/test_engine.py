"""The model in NumPy is held to the engines of PyTorch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.errors import InputError
from allyouneed.fast.comparison import compare_light
from allyouneed.fast.quantization import greatest_level
from allyouneed.fast.selection import make_engine
from allyouneed.light.engine import LightEngine
from allyouneed.nn import Transformer
from allyouneed.nn.weights import weights
from allyouneed.younger import build_model
from conftest import ADJUSTED, ALL_OPTIONS, SMALL
from twins import scatter

SIZES: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "activation": "gelu", "projection_bias": True},
    {"activation": "silu", "d_k": 5, "d_v": 7},
    {"positions": "learned", "tied_embeddings": "none", "target_vocab_size": 11},
    {"tied_embeddings": "target", "target_vocab_size": 11},
    *ADJUSTED,
    {**ALL_OPTIONS, "norm": "pre"},
]


def in_numpy(model: Transformer, precision: str = "float32") -> LightEngine:
    arrays: dict[str, Any] = {name: one.numpy() for name, one in weights(model).items()}
    return LightEngine(model.config, arrays, greatest_level() if precision == "int8" else None)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("sizes", SIZES)
def test_it_gives_the_logits_of_the_engine(sizes: dict[str, Any], precision: str) -> None:
    model = build_model(replace(SMALL, max_length=70, **sizes)).eval()
    scatter(model)
    assert compare_light(in_numpy(model, precision), make_engine(model, precision=precision), model) == ""


def test_an_int8_product_is_exact_where_float32_would_round() -> None:
    wide = replace(SMALL, d_ff=2048, encoder_layers=1, decoder_layers=1)
    model = Transformer(wide).eval()
    torch.nn.init.ones_(model.get_parameter("decoder.layers.0.feed_forward.outer.weight"))
    light, engine = in_numpy(model, "int8"), make_engine(model, precision="int8")
    assert {one.weight.dtype for block in light._decoder for one in block.values()} == {
        np.dtype(np.float32), np.dtype(np.float64),
    }  # fmt: skip
    assert compare_light(light, engine, model) == ""


def test_another_model_is_seen(config: ModelConfig) -> None:
    first, second = (Transformer(config).eval() for _ in range(2))
    scatter(first)
    assert "other logits" in compare_light(in_numpy(second), make_engine(first), first)


def test_sentences_that_stay_do_not_change_when_others_leave(config: ModelConfig) -> None:
    model = Transformer(config).eval()
    scatter(model)
    light, rng = in_numpy(model), np.random.default_rng(1)
    source = rng.integers(1, config.vocab_size, (3, 5))
    state = light.start(source).reorder(np.repeat(np.arange(3), 2))
    _, state = light.step(rng.integers(1, config.vocab_size, 6), state)
    last = rng.integers(1, config.vocab_size, 6)
    together, _ = light.step(last, state)
    alone, _ = light.step(last[[4, 5, 0, 1]], state.keep(np.array([2, 0])))
    np.testing.assert_allclose(alone, together[[4, 5, 0, 1]], atol=1e-5)


def test_what_an_engine_refuses_is_refused(config: ModelConfig) -> None:
    light = in_numpy(Transformer(config))
    with pytest.raises(InputError, match="longer than max_length"):
        light.start(np.ones((1, config.max_length + 1), np.int64))
    with pytest.raises(InputError, match="ids must be"):
        light.start(np.full((1, 2), config.vocab_size))
    state = light.start(np.ones((1, 2), np.int64))
    for _ in range(config.max_length):
        _, state = light.step(np.ones(1, np.int64), state)
    with pytest.raises(InputError, match="longer than max_length"):
        light.step(np.ones(1, np.int64), state)
