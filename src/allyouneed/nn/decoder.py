"""The decoder (§3.1, Figure 1 right): N blocks of self-attention, cross-attention and feed-forward.

Translating token by token, a pass over the newest token needs only the keys and values of earlier tokens in every
layer: the KV cache. With a `DecoderCache` the same `forward` takes only the newest tokens.
"""

from dataclasses import dataclass, field

from torch import Tensor

from ..config import ModelConfig
from .attention import KVCache, MultiHeadAttention
from .encoder import build_attention, build_feed_forward, build_residual
from .module import Layers, Module
from .residual import closing_norm


@dataclass(slots=True)
class BlockCache:
    """The KV caches of a block: of target tokens, a row for each hypothesis; of the memory, a row for each sentence."""

    tokens: KVCache = field(default_factory=KVCache)
    memory: KVCache = field(default_factory=lambda: KVCache(grows=False))


class DecoderCache:
    """The KV caches of all blocks, for N hypotheses of B sentences, N/B side by side for each."""

    def __init__(self, blocks: int) -> None:
        self.blocks = [BlockCache() for _ in range(blocks)]

    @property
    def length(self) -> int:
        """The number of tokens so far."""
        return self.blocks[0].tokens.length

    def select(self, hypotheses: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these hypotheses, in this order, and these sentences (None: all); either may be kept more than once."""
        for block in self.blocks:
            block.tokens.select(hypotheses)
            if sentences is not None:
                block.memory.select(sentences)


class DecoderBlock(Module):
    """Self-attention to earlier tokens, cross-attention to the memory, then the feed-forward network."""

    def __init__(self, config: ModelConfig, attention: type[MultiHeadAttention] = MultiHeadAttention) -> None:
        super().__init__()
        self.self_attention = build_attention(config, attention)
        self.self_attention_residual = build_residual(config)
        self.cross_attention = build_attention(config)
        self.cross_attention_residual = build_residual(config)
        self.feed_forward = build_feed_forward(config)
        self.feed_forward_residual = build_residual(config)

    def forward(
        self, x: Tensor, memory: Tensor, attn_mask: Tensor, causal_mask: Tensor, cache: BlockCache | None = None
    ) -> Tensor:
        """Shapes: as in `Decoder`."""
        past = cache.tokens if cache else None
        projected = cache.memory if cache else None

        def attend_to_memory(y: Tensor) -> Tensor:
            # The hypotheses of a sentence attend to its memory together, as if they were positions.
            together = y.reshape(memory.size(0), -1, y.size(-1))  # (N, T, D) → (B, N/B · T, D)
            return self.cross_attention(together, memory, memory, attn_mask, projected).view_as(y)

        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, y, causal_mask, past))
        x = self.cross_attention_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward)


class Decoder(Module):
    """`config.decoder_layers` blocks; `attention` is the class of their self-attention."""

    def __init__(self, config: ModelConfig, attention: type[MultiHeadAttention] = MultiHeadAttention) -> None:
        super().__init__()
        self.layers = Layers[DecoderBlock](DecoderBlock(config, attention) for _ in range(config.decoder_layers))
        self.norm = closing_norm(d_model=config.d_model, norm=config.norm)

    def forward(
        self, x: Tensor, memory: Tensor, attn_mask: Tensor, causal_mask: Tensor, cache: DecoderCache | None = None
    ) -> Tensor:
        """Decode the targets of B sentences, or with a `cache` the newest T tokens of N hypotheses.

        Shapes: x (N, T, D), memory (B, S, D), masks over the memory (B, 1, 1, S) and the tokens (T, L) → (N, T, D).
        """
        blocks = cache.blocks if cache else [None] * len(self.layers)
        for layer, block in zip(self.layers, blocks, strict=True):
            x = layer(x, memory, attn_mask, causal_mask, block)
        return self.norm(x)
