"""The decoder (§3.1, Figure 1 right): N blocks of self-attention, cross-attention and feed-forward.

Training and translation use the same `forward`. Training passes all target tokens at once. Translation passes only the
newest token and a `DecoderCache`, which holds the keys and values of earlier tokens in every layer (the KV cache).
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
    """The KV caches of one block.

    `tokens` is for self-attention, with a row for each hypothesis; `memory` is for cross-attention, with a row for each
    sentence.
    """

    tokens: KVCache = field(default_factory=KVCache)
    memory: KVCache = field(default_factory=lambda: KVCache(grows=False))


class DecoderCache:
    """The KV caches of all blocks, for N hypotheses of B sentences.

    Every sentence has N/B hypotheses, in adjacent rows.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = [BlockCache() for _ in range(blocks)]

    @property
    def length(self) -> int:
        """The number of tokens in the cache."""
        return self.blocks[0].tokens.length

    def select(self, hypotheses: Tensor, sentences: Tensor | None = None) -> None:
        """Keep only these hypotheses, and only these `sentences` (None: all), in this order.

        An index may occur more than once.
        """
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
        """Apply the three sublayers. The shapes are as in `Decoder.forward`."""
        past = cache.tokens if cache else None
        projected = cache.memory if cache else None

        def attend_to_memory(y: Tensor) -> Tensor:
            # The hypotheses of a sentence share its memory. Attending in one row, like more positions, saves a copy of
            # the memory for each of them.
            together = y.reshape(memory.size(0), -1, y.size(-1))  # (N, T, D) → (B, N/B · T, D)
            return self.cross_attention(together, memory, memory, attn_mask, projected).view_as(y)

        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, y, causal_mask, past))
        x = self.cross_attention_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward)


class Decoder(Module):
    """A stack of `config.decoder_layers` blocks. `attention` is the class of their self-attention."""

    def __init__(self, config: ModelConfig, attention: type[MultiHeadAttention] = MultiHeadAttention) -> None:
        super().__init__()
        self.layers = Layers[DecoderBlock](DecoderBlock(config, attention) for _ in range(config.decoder_layers))
        self.norm = closing_norm(d_model=config.d_model, norm=config.norm)

    def forward(
        self, x: Tensor, memory: Tensor, attn_mask: Tensor, causal_mask: Tensor, cache: DecoderCache | None = None
    ) -> Tensor:
        """Decode the targets of B sentences, or with a `cache` the newest T tokens of N hypotheses.

        Shapes:
            x           (N, T, D); without a cache N is B
            memory      (B, S, D)
            attn_mask   (B, 1, 1, S), True at the tokens of the memory
            causal_mask (T, L), where L counts the cached tokens and the T new ones
            returns     (N, T, D)
        """
        blocks = cache.blocks if cache else [None] * len(self.layers)
        for layer, block in zip(self.layers, blocks, strict=True):
            x = layer(x, memory, attn_mask, causal_mask, block)
        return self.norm(x)
