"""The decoder (§3.1, Figure 1 right), for whole sentences and for one token at a time.

A step needs only the keys and values of earlier tokens in every layer, the KV cache. They are the `DecoderState`: a
step takes one and returns a longer one, and keeps nothing on the module.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..config import ModelConfig
from .attention import MultiHeadAttention
from .encoder import build_attention, build_feed_forward, build_residual
from .module import Layers, Module
from .residual import closing_norm


@dataclass(frozen=True, slots=True)
class LayerState:
    """The KV cache of one block.

    Shapes: keys and values of the tokens so far (N, H, T, K), of the memory (B, H, S, K).
    """

    keys: Tensor
    values: Tensor
    memory_keys: Tensor
    memory_values: Tensor


@dataclass(frozen=True, slots=True)
class DecoderState:
    """The KV caches of all blocks, for N hypotheses of B sentences, N/B side by side for each.

    The memory is kept once for each sentence, however many hypotheses attend to it. `length` counts the
    tokens so far; `attn_mask` is the mask over the memory, (B, 1, 1, S).
    """

    layers: tuple[LayerState, ...]
    attn_mask: Tensor
    length: int = 0

    def reorder(self, hypotheses: Tensor) -> "DecoderState":
        """The state whose hypothesis n is this one's hypothesis `hypotheses[n]`, of the same sentence."""
        layers = tuple(
            replace(layer, keys=layer.keys[hypotheses], values=layer.values[hypotheses]) for layer in self.layers
        )
        return replace(self, layers=layers)

    def keep(self, sentences: Tensor) -> "DecoderState":
        """The state of these sentences alone, with all their hypotheses."""
        rows = torch.arange(self.layers[0].keys.size(0), device=sentences.device).view(self.attn_mask.size(0), -1)
        layers = tuple(
            replace(layer, memory_keys=layer.memory_keys[sentences], memory_values=layer.memory_values[sentences])
            for layer in self.layers
        )
        kept = replace(self, layers=layers, attn_mask=self.attn_mask[sentences])
        return kept.reorder(rows[sentences].flatten())


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

    def forward(self, x: Tensor, memory: Tensor, attn_mask: Tensor, causal_mask: Tensor) -> Tensor:
        """Shapes: x (B, T, D), memory (B, S, D), masks over the memory and over the target → (B, T, D)."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, y, causal_mask))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, memory, memory, attn_mask))
        return self.feed_forward_residual(x, self.feed_forward)

    def start(self, memory: Tensor) -> LayerState:
        """The state before the first token. The memory (B, S, D) is projected here, once for all steps."""
        keys, values = self.cross_attention.project_kv(memory, memory)
        return LayerState(keys[:, :, :0], values[:, :, :0], keys, values)

    def step(self, x: Tensor, state: LayerState, attn_mask: Tensor) -> tuple[Tensor, LayerState]:
        """`forward` for the newest token alone. Shapes: x (N, 1, D) → (N, 1, D)."""

        def attend_to_past(y: Tensor) -> Tensor:
            nonlocal state
            keys, values = self.self_attention.project_kv(y, y, start=state.keys.size(2))
            state = replace(state, keys=torch.cat((state.keys, keys), 2), values=torch.cat((state.values, values), 2))
            return self.self_attention.attend(y, state.keys, state.values)  # no mask: the cache has no later tokens

        def attend_to_memory(y: Tensor) -> Tensor:
            # The hypotheses of a sentence attend to its memory together, as if they were positions.
            together = y.view(attn_mask.size(0), -1, y.size(-1))  # (N, 1, D) → (B, N/B, D)
            attended = self.cross_attention.attend(together, state.memory_keys, state.memory_values, attn_mask)
            return attended.view_as(y)  # (B, N/B, D) → (N, 1, D)

        x = self.self_attention_residual(x, attend_to_past)
        x = self.cross_attention_residual(x, attend_to_memory)
        return self.feed_forward_residual(x, self.feed_forward), state


class Decoder(Module):
    """`config.decoder_layers` blocks, whose self-attention is of class `attention`."""

    def __init__(self, config: ModelConfig, attention: type[MultiHeadAttention] = MultiHeadAttention) -> None:
        super().__init__()
        self.layers = Layers[DecoderBlock](DecoderBlock(config, attention) for _ in range(config.decoder_layers))
        self.norm = closing_norm(d_model=config.d_model, norm=config.norm)

    def forward(self, x: Tensor, memory: Tensor, attn_mask: Tensor, causal_mask: Tensor) -> Tensor:
        """Shapes: x (B, T, D), memory (B, S, D), masks over the memory and over the target → (B, T, D)."""
        for layer in self.layers:
            x = layer(x, memory, attn_mask, causal_mask)
        return self.norm(x)

    def start(self, memory: Tensor, attn_mask: Tensor) -> DecoderState:
        """The state before the first token, one hypothesis for each sentence."""
        return DecoderState(tuple(layer.start(memory) for layer in self.layers), attn_mask)

    def step(self, x: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """`forward` for the newest token alone. Shapes: x (N, 1, D) → (N, 1, D)."""
        layers = []
        for layer, past in zip(self.layers, state.layers, strict=True):
            x, present = layer.step(x, past, state.attn_mask)
            layers.append(present)
        return self.norm(x), replace(state, layers=tuple(layers), length=state.length + 1)
