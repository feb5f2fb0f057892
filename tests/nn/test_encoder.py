from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import nn

from allyouneed.config import ModelConfig
from allyouneed.nn import Encoder, EncoderBlock
from twins import same_encoder_layer, same_norm, scatter

REAL = torch.tensor([[True] * 5, [True, True, True, False, False]])


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_block_equals_that_of_pytorch(
    config: ModelConfig, norm: Literal["post", "pre"], activation: Literal["relu", "gelu"]
) -> None:
    ours = EncoderBlock(replace(config, norm=norm, activation=activation)).eval()
    reference = nn.TransformerEncoderLayer(
        12, 3, 20, norm_first=norm == "pre", activation=activation, batch_first=True
    ).eval()
    scatter(ours)
    same_encoder_layer(reference, ours)
    x = torch.randn(2, 5, 12)
    expected = reference(x, src_key_padding_mask=~REAL)
    torch.testing.assert_close(ours(x, REAL[:, None, None])[REAL], expected[REAL])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_stack_equals_that_of_pytorch(config: ModelConfig, norm: Literal["post", "pre"]) -> None:
    ours = Encoder(replace(config, norm=norm)).eval()
    scatter(ours)
    layer = nn.TransformerEncoderLayer(12, 3, 20, norm_first=norm == "pre", batch_first=True)
    reference = nn.TransformerEncoder(
        layer, 2, norm=nn.LayerNorm(12) if norm == "pre" else None, enable_nested_tensor=False
    ).eval()
    for their_layer, our_layer in zip(reference.layers, ours.layers, strict=True):
        same_encoder_layer(their_layer, our_layer)
    if reference.norm is not None:
        same_norm(reference.norm, ours.norm)  # type: ignore[arg-type]
    x = torch.randn(2, 5, 12)
    expected = reference(x, src_key_padding_mask=~REAL)
    torch.testing.assert_close(ours(x, REAL[:, None, None])[REAL], expected[REAL])


def test_without_positions_words_in_another_order_get_the_same_vectors(config: ModelConfig) -> None:
    encoder, x, order = Encoder(config).eval(), torch.randn(1, 6, 12), torch.tensor([3, 0, 5, 1, 4, 2])
    everywhere = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    torch.testing.assert_close(encoder(x[:, order], everywhere), encoder(x, everywhere)[:, order])
