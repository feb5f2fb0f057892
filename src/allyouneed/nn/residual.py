"""Residual connection and layer norm around every sublayer (§3.1, "Add & Norm"), with dropout (§5.4).

The paper normalizes after adding ("post"). Normalizing before the sublayer ("pre") trains deep stacks more stably, but
leaves the last sum unnormalized, so a stack of such blocks ends with one more layer norm.
"""

from collections.abc import Callable
from typing import Literal

from torch import Tensor

from ..config.settings import require_fraction
from .dropout import Dropout
from .module import Identity, Module
from .normalization import LayerNorm


class Residual(Module):
    """LayerNorm(x + Dropout(sublayer(x))) for "post", or x + Dropout(sublayer(LayerNorm(x))) for "pre"."""

    def __init__(self, *, d_model: int, dropout: float, norm: Literal["post", "pre"]) -> None:
        super().__init__()
        require_fraction("dropout", dropout)
        self.norm = LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the sublayer's output to its input, and normalize. Shapes: (B, L, D) in and out."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


def closing_norm(*, d_model: int, norm: Literal["post", "pre"]) -> Module:
    """Make the norm that ends a stack of layers: a layer norm for "pre", the identity for "post"."""
    return LayerNorm(d_model) if norm == "pre" else Identity()
