"""Input embedding (§3.4): a table looked up by id, its rows scaled by √d_model.

Rows start as N(0, 1/d_model), so that the numbers of a scaled row have variance 1, near the 0.5 of the sines and
cosines added to them, and so that the unscaled table serves as the projection's weight.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config.settings import require_whole
from ..errors import InputError
from ..machine.device import move
from .module import Module


class Embedding(Module):
    """Ids → vectors.

    Shapes: ids (B, L), integers → (B, L, D). Refuses an id outside the vocabulary. Ids may be on the CPU, whatever the
    device of the table; a program that checks ids on a GPU waits for it.
    """

    def __init__(self, *, vocab_size: int, d_model: int) -> None:
        super().__init__()
        require_whole("vocab_size", vocab_size)
        require_whole("d_model", d_model)
        self.vocab_size, self.d_model = vocab_size, d_model
        self.table = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.table, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        refuse_unknown_ids(ids, self.vocab_size)
        ids = move(ids, self.table.device)
        return F.embedding(ids, self.table) * math.sqrt(self.d_model)  # (B, L) → (B, L, D)


def refuse_unknown_ids(ids: Tensor, vocab_size: int) -> None:
    """Refuse ids that are not integers or are outside the vocabulary."""
    if ids.is_floating_point() or ids.dtype == torch.bool:
        raise InputError(f"ids must be whole numbers, such as torch.int64; got {ids.dtype}")
    if ids.numel() == 0:
        return
    low, high = torch.stack(ids.aminmax()).tolist()  # before the lookup: a GPU would only assert
    if low < 0 or high >= vocab_size:
        unknown = low if low < 0 else high
        raise InputError(f"id {unknown} is outside the vocabulary of {vocab_size} (0 to {vocab_size - 1})")
