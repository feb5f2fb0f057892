"""Position-wise feed-forward network (§3.3): FFN(x) = max(0, xW₁ + b₁)W₂ + b₂, equation 2."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from ..config.settings import require_whole
from .module import Linear, Module

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(Module):
    """Two linear maps with an activation between them, applied to every position alike.

    Shapes: (B, L, D) → (B, L, F) → (B, L, D).
    """

    def __init__(self, *, d_model: int, d_ff: int, activation: Literal["relu", "gelu", "silu"] = "relu") -> None:
        super().__init__()
        require_whole("d_model", d_model)
        require_whole("d_ff", d_ff)
        self.inner = Linear(d_model, d_ff)
        self.outer = Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.activation(self.inner(x)))
