"""Input embedding (§3.4): a table with one vector for each id, multiplied by √d_model.

The table is initialized with N(0, 1/d_model), so the scaled vectors have variance 1, close to the variance of 0.5 of
the sines and cosines added to them. The projection can use the unscaled table as its weight.
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
    """A table of vectors, looked up by id.

    Shapes: integer ids (B, L) → (B, L, D). Refuses an id outside the vocabulary. The ids may be on the CPU while the
    table is on a GPU. The check runs on the CPU, so it waits for the GPU if the ids are there.
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
    low, high = torch.stack(ids.aminmax()).tolist()  # before the lookup, where a GPU would only fail an assertion
    if low < 0 or high >= vocab_size:
        unknown = low if low < 0 else high
        raise InputError(f"id {unknown} is outside the vocabulary of {vocab_size} (0 to {vocab_size - 1})")
