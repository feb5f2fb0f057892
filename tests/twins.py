"""Give PyTorch's own layers the weights of ours, to hold the two side by side."""

import torch
from torch import nn

from allyouneed.nn import DecoderBlock, EncoderBlock, FeedForward, LayerNorm, MultiHeadAttention


def same_linear(reference: nn.Linear, ours: nn.Linear) -> None:
    reference.load_state_dict(ours.state_dict())


def same_norm(reference: nn.LayerNorm, ours: LayerNorm) -> None:
    reference.load_state_dict({"weight": ours.gain, "bias": ours.bias})


def same_attention(reference: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    parts = (ours.query, ours.key, ours.value)
    reference.load_state_dict(
        {
            "in_proj_weight": torch.cat([part.weight for part in parts]),
            "in_proj_bias": torch.cat([part.bias for part in parts]),
            "out_proj.weight": ours.output.weight,
            "out_proj.bias": ours.output.bias,
        }
    )


def same_feed_forward(reference: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer, ours: FeedForward) -> None:
    same_linear(reference.linear1, ours.inner)
    same_linear(reference.linear2, ours.outer)


def same_encoder_layer(reference: nn.TransformerEncoderLayer, ours: EncoderBlock) -> None:
    same_attention(reference.self_attn, ours.attention)
    same_feed_forward(reference, ours.feed_forward)
    same_norm(reference.norm1, ours.attention_residual.norm)
    same_norm(reference.norm2, ours.feed_forward_residual.norm)


def same_decoder_layer(reference: nn.TransformerDecoderLayer, ours: DecoderBlock) -> None:
    same_attention(reference.self_attn, ours.self_attention)
    same_attention(reference.multihead_attn, ours.cross_attention)
    same_feed_forward(reference, ours.feed_forward)
    same_norm(reference.norm1, ours.self_attention_residual.norm)
    same_norm(reference.norm2, ours.cross_attention_residual.norm)
    same_norm(reference.norm3, ours.feed_forward_residual.norm)


def scatter(module: nn.Module) -> None:
    """Move every weight, gain and bias off its first value, so that a forgotten one shows."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
