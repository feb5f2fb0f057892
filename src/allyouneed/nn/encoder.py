"""The encoder (§3.1, Figure 1 left): N blocks of self-attention and feed-forward."""

from torch import Tensor, nn

from ..config import ModelConfig
from .attention import MultiHeadAttention
from .feedforward import FeedForward
from .packed import AttentionMask
from .query_key_norm import QueryKeyNormAttention, RotaryQueryKeyNormAttention
from .residual import Residual, closing_norm
from .rotary import RotaryAttention


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network. Shapes: (B, S, D) in and out."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = build_self_attention(config)
        self.attention_residual = build_residual(config)
        self.feed_forward = build_feed_forward(config)
        self.feed_forward_residual = build_residual(config)

    def forward(self, x: Tensor, attn_mask: AttentionMask) -> Tensor:
        x = self.attention_residual(x, lambda y: self.attention(y, y, y, attn_mask))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """`config.encoder_layers` blocks. Shapes: (B, S, D) → the memory, (B, S, D)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderBlock(config) for _ in range(config.encoder_layers))
        self.norm = closing_norm(d_model=config.d_model, norm=config.norm)

    def forward(self, x: Tensor, attn_mask: AttentionMask) -> Tensor:
        """`attn_mask` broadcasts to (B, H, S, S)."""
        for layer in self.layers:
            x = layer(x, attn_mask)
        return self.norm(x)  # type: ignore[no-any-return]


def build_self_attention(config: ModelConfig) -> MultiHeadAttention:
    """The self-attention of a block with this config."""
    if config.positions == "rotary":
        return _build(config, RotaryQueryKeyNormAttention if config.query_key_norm else RotaryAttention)
    return _build(config, QueryKeyNormAttention if config.query_key_norm else MultiHeadAttention)


def build_cross_attention(config: ModelConfig) -> MultiHeadAttention:
    """The cross-attention of a block with this config, which has no positions and no query-key norm."""
    return _build(config, MultiHeadAttention)


def _build(config: ModelConfig, kind: type[MultiHeadAttention]) -> MultiHeadAttention:
    return kind(
        d_model=config.d_model,
        heads=config.heads,
        d_k=config.d_k,
        d_v=config.d_v,
        dropout=config.attention_dropout,
    )


def build_feed_forward(config: ModelConfig) -> FeedForward:
    """The feed-forward network of a block with this config."""
    return FeedForward(d_model=config.d_model, d_ff=config.d_ff, activation=config.activation)


def build_residual(config: ModelConfig) -> Residual:
    """The residual connection and norm of a sublayer with this config."""
    return Residual(d_model=config.d_model, dropout=config.dropout, norm=config.norm)
