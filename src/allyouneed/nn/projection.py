"""Projection (§3.4): vectors → logits over the vocabulary, with its own table or an embedding's."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config.settings import require_whole
from .module import Module


class Projection(Module):
    """A linear map, by default without bias. A given `table` (V, D) is shared; otherwise one is drawn from N(0, 1/D).

    Shapes: (…, D) → logits (…, V).
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
