"""What a model does while it runs, noted down from outside: hooks, gone when the block ends."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..nn import MultiHeadAttention


@contextmanager
def recorded_attention(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """The attention weights of every call of `model` inside the block, newest first forgotten.

    Yields a dictionary that fills as the model runs: a part's name, such as
    `decoder.layers.0.cross_attention`, → its weights (B, H, T, S). The model runs through its fused
    kernel as ever; equation 1 is worked out beside it, from what went in.
    """
    seen: dict[str, Tensor] = {}

    def note(name: str, part: MultiHeadAttention, inputs: tuple[Any, ...], output: Tensor) -> None:
        query, key, _, *may_look = inputs
        with torch.no_grad():
            seen[name] = part.weights(query, key, *may_look)

    with ExitStack() as hooks:
        for name, part in model.named_modules():
            if isinstance(part, MultiHeadAttention):
                hooks.callback(part.register_forward_hook(partial(note, name)).remove)
        yield seen
