"""Projection (§3.4): vectors → logits over the vocabulary. Its table may be shared with the embedding."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config.settings import require_whole
from .module import Module


class Projection(Module):
    """A linear map to the vocabulary, without bias by default. Shapes: (…, D) → logits (…, V).

    The map uses the given `table` (V, D), which an embedding may share. Without one it starts from N(0, 1/D).
    """

    def __init__(
        self,
        *,
        d_model: int,
        vocab_size: int,
        table: nn.Parameter | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        require_whole("d_model", d_model)
        require_whole("vocab_size", vocab_size)
        if table is None:
            table = nn.Parameter(torch.empty(vocab_size, d_model))
            nn.init.normal_(table, std=d_model**-0.5)
        self.table = table
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.table, self.bias)
