"""The encoder (§3.1, Figure 1 left): N blocks of self-attention and feed-forward."""

from torch import Tensor

from ..config import ModelConfig
from .attention import MultiHeadAttention
from .feedforward import FeedForward
from .module import Layers, Module
from .residual import Residual, closing_norm


class EncoderBlock(Module):
    """Self-attention, then the feed-forward network. Shapes: (B, S, D) in and out."""

    def __init__(self, config: ModelConfig, attention: type[MultiHeadAttention] = MultiHeadAttention) -> None:
        super().__init__()
        self.attention = build_attention(config, attention)
        self.attention_residual = build_residual(config)
        self.feed_forward = build_feed_forward(config)
        self.feed_forward_residual = build_residual(config)

    def forward(self, x: Tensor, attn_mask: Tensor) -> Tensor:
        x = self.attention_residual(x, lambda y: self.attention(y, y, y, attn_mask))
        return self.feed_forward_residual(x, self.feed_forward)


class Encoder(Module):
    """A stack of `config.encoder_layers` blocks. `attention` is the class of their self-attention.

    Shapes: (B, S, D) → the memory, (B, S, D).
    """

    def __init__(self, config: ModelConfig, attention: type[MultiHeadAttention] = MultiHeadAttention) -> None:
        super().__init__()
        self.layers = Layers[EncoderBlock](EncoderBlock(config, attention) for _ in range(config.encoder_layers))
        self.norm = closing_norm(d_model=config.d_model, norm=config.norm)

    def forward(self, x: Tensor, attn_mask: Tensor) -> Tensor:
        """Pass `x` through all blocks. `attn_mask` broadcasts to (B, H, S, S)."""
        for layer in self.layers:
            x = layer(x, attn_mask)
        return self.norm(x)


def build_attention(
    config: ModelConfig, attention: type[MultiHeadAttention] = MultiHeadAttention
) -> MultiHeadAttention:
    """Make the attention of a sublayer, with the sizes in `config`."""
    return attention(
        d_model=config.d_model, heads=config.heads, d_k=config.d_k, d_v=config.d_v, dropout=config.attention_dropout
    )


def build_feed_forward(config: ModelConfig) -> FeedForward:
    """Make the feed-forward network of a block, with the sizes in `config`."""
    return FeedForward(d_model=config.d_model, d_ff=config.d_ff, activation=config.activation)


def build_residual(config: ModelConfig) -> Residual:
    """Make the residual connection and layer norm of a sublayer, as `config` says."""
    return Residual(d_model=config.d_model, dropout=config.dropout, norm=config.norm)
