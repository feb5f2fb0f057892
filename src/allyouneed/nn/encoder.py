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

    def __init__(self, config: ModelConfig, *, is_first: bool = True) -> None:
        super().__init__()
        self.attention = build_self_attention(config, is_first=is_first)
        self.attention_residual = build_residual(config)
        self.feed_forward = build_feed_forward(config)
        self.feed_forward_residual = build_residual(config)

    def forward(self, x: Tensor, attn_mask: AttentionMask, *first_values: Tensor) -> Tensor:
        x = self.attention_residual(x, lambda y: self.attention(y, y, y, attn_mask, *first_values))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]

    def project_values(self, x: Tensor) -> Tensor:
        """The values of its self-attention: (B, S, D) → (B, S, H·K)."""
        return self.attention.value(self.attention_residual.pre_norm(x))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """`config.encoder_layers` blocks. Shapes: (B, S, D) → the memory, (B, S, D)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderBlock(config, is_first=i == 0) for i in range(config.encoder_layers))
        self.norm = closing_norm(d_model=config.d_model, norm=config.norm)
        self.mixes_values = config.value_residual

    def forward(self, x: Tensor, attn_mask: AttentionMask) -> Tensor:
        """`attn_mask` broadcasts to (B, H, S, S)."""
        first_values = (self.layers[0].project_values(x),) if self.mixes_values else ()  # type: ignore[operator]
        for layer in self.layers:
            x = layer(x, attn_mask, *first_values)
        return self.norm(x)  # type: ignore[no-any-return]


def build_self_attention(config: ModelConfig, *, is_first: bool) -> MultiHeadAttention:
    """The self-attention of a block with this config; whether the block is the first of its stack."""
    if config.positions == "rotary":
        return _build(config, RotaryQueryKeyNormAttention if config.query_key_norm else RotaryAttention, is_first)
    return _build(config, QueryKeyNormAttention if config.query_key_norm else MultiHeadAttention, is_first)


def build_cross_attention(config: ModelConfig, *, is_first: bool) -> MultiHeadAttention:
    """The cross-attention of a block with this config, which has no positions and no query-key norm."""
    return _build(config, MultiHeadAttention, is_first)


def _build(config: ModelConfig, kind: type[MultiHeadAttention], is_first: bool) -> MultiHeadAttention:
    return kind(
        d_model=config.d_model,
        heads=config.heads,
        d_k=config.d_k,
        d_v=config.d_v,
        dropout=config.attention_dropout,
        mixes_values=config.value_residual and not is_first,
    )


def build_feed_forward(config: ModelConfig) -> FeedForward:
    """The feed-forward network of a block with this config."""
    return FeedForward(d_model=config.d_model, d_ff=config.d_ff, activation=config.activation)


def build_residual(config: ModelConfig) -> Residual:
    """The residual connection and norm of a sublayer with this config."""
    return Residual(d_model=config.d_model, dropout=config.dropout, norm=config.norm)
