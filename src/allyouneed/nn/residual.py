"""Add & norm: the ring around every sublayer (§3.1), with dropout (§5.4).

The paper normalises after adding ("post"). Normalising first ("pre") trains more calmly when the
stack is deep, but leaves the last sum unnormalised, so the stack then ends in one more norm. No
other file knows which of the two it is.
"""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from ..settings import require_fraction
from .dropout import Dropout
from .normalization import LayerNorm


class Residual(nn.Module):
    """`x` plus what a sublayer makes of it, normalised."""

    def __init__(self, *, d_model: int, dropout: float, norm: Literal["post", "pre"]) -> None:
        super().__init__()
        require_fraction("dropout", dropout)
        self.norm = LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Shapes: (B, L, D) in and out."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))  # type: ignore[no-any-return]
        return self.norm(x + self.dropout(sublayer(x)))  # type: ignore[no-any-return]


def closing_norm(*, d_model: int, norm: Literal["post", "pre"]) -> nn.Module:
    """What ends a stack of layers: one more norm after "pre", nothing after "post"."""
    return LayerNorm(d_model) if norm == "pre" else nn.Identity()
