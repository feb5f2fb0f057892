"""The decoder (§3.1, Figure 1 right), for whole sentences and for one word at a time.

A step needs of the past only the keys and values of every layer. They are the `DecoderState`: it
goes in, a longer one comes out, and nothing is left behind on the module.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..config import ModelConfig
from .encoder import build_attention, build_feed_forward, build_residual
from .residual import closing_norm


@dataclass(frozen=True, slots=True)
class LayerState:
    """What one block keeps of the past.

    Shapes: keys and values of the words so far (N, H, T, K), of the memory (B, H, S, K).
    """

    keys: Tensor
    values: Tensor
    memory_keys: Tensor
    memory_values: Tensor


@dataclass(frozen=True, slots=True)
class DecoderState:
    """What a step needs of the past: N hypotheses of B sentences, N/B side by side for each.

    The memory is kept once a sentence, however many hypotheses look at it. `length` counts the
    words so far; `may_look` is the mask over the memory, (B, 1, 1, S).
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
        of_each = torch.arange(self.layers[0].keys.size(0), device=sentences.device).view(self.attn_mask.size(0), -1)
        layers = tuple(
            replace(layer, memory_keys=layer.memory_keys[sentences], memory_values=layer.memory_values[sentences])
            for layer in self.layers
        )
        kept = replace(self, layers=layers, attn_mask=self.attn_mask[sentences])
        return kept.reorder(of_each[sentences].flatten())


class DecoderBlock(nn.Module):
    """A word looks at the words before it, then at the memory, then thinks for itself."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = build_attention(config)
        self.self_attention_residual = build_residual(config)
        self.cross_attention = build_attention(config)
        self.cross_attention_residual = build_residual(config)
        self.feed_forward = build_feed_forward(config)
        self.feed_forward_residual = build_residual(config)

    def forward(self, x: Tensor, memory: Tensor, attn_mask: Tensor, causal_mask: Tensor) -> Tensor:
        """Shapes: x (B, T, D), memory (B, S, D), masks over the memory and over the past → (B, T, D)."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, y, causal_mask))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, memory, memory, attn_mask))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]

    def start(self, memory: Tensor) -> LayerState:
        """The state before the first word. The memory (B, S, D) is projected here, once for all words."""
        keys, values = self.cross_attention.project_kv(memory, memory)
        return LayerState(keys[:, :, :0], values[:, :, :0], keys, values)

    def step(self, x: Tensor, state: LayerState, attn_mask: Tensor) -> tuple[Tensor, LayerState]:
        """`forward` for the newest word alone. Shapes: x (N, 1, D) → (N, 1, D)."""

        def look_back(y: Tensor) -> Tensor:
            nonlocal state
            keys, values = self.self_attention.project_kv(y, y)
            state = replace(state, keys=torch.cat((state.keys, keys), 2), values=torch.cat((state.values, values), 2))
            return self.self_attention.attend(y, state.keys, state.values)  # the past has no future to hide

        def look_at_memory(y: Tensor) -> Tensor:
            # A sentence's hypotheses ask its one memory side by side, as if they were positions.
            together = y.view(attn_mask.size(0), -1, y.size(-1))  # (N, 1, D) → (B, N/B, D)
            seen = self.cross_attention.attend(together, state.memory_keys, state.memory_values, attn_mask)
            return seen.view_as(y)  # (B, N/B, D) → (N, 1, D)

        x = self.self_attention_residual(x, look_back)
        x = self.cross_attention_residual(x, look_at_memory)
        return self.feed_forward_residual(x, self.feed_forward), state


class Decoder(nn.Module):
    """`config.decoder_layers` blocks."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        self.norm = closing_norm(d_model=config.d_model, norm=config.norm)

    def forward(self, x: Tensor, memory: Tensor, attn_mask: Tensor, causal_mask: Tensor) -> Tensor:
        """Shapes: x (B, T, D), memory (B, S, D), masks over the memory and over the past → (B, T, D)."""
        for layer in self.layers:
            x = layer(x, memory, attn_mask, causal_mask)
        return self.norm(x)  # type: ignore[no-any-return]

    def start(self, memory: Tensor, attn_mask: Tensor) -> DecoderState:
        """The state before the first word, one hypothesis a sentence."""
        return DecoderState(tuple(layer.start(memory) for layer in self.layers), attn_mask)  # type: ignore[operator]

    def step(self, x: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """`forward` for the newest word alone. Shapes: x (N, 1, D) → (N, 1, D)."""
        layers = []
        for layer, past in zip(self.layers, state.layers, strict=True):
            x, present = layer.step(x, past, state.attn_mask)  # type: ignore[operator]
            layers.append(present)
        return self.norm(x), replace(state, layers=tuple(layers), length=state.length + 1)
