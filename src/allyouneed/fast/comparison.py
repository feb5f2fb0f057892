"""Help to compare a faster computation with `nn/`: varied ids, and a message about a difference."""

import torch
from torch import Tensor

from ..nn.transformer import Transformer


def describe_change(model: Transformer) -> str:
    """Say that the model's own code computes because `fast/` differs from it, and whether `nn/` was edited."""
    ours = (__package__.replace("fast", "nn"), __package__.replace("fast", "younger"), "torch.nn")
    parts = list(model.modules())
    is_ours = all(type(part).__module__.startswith(ours) and "forward" not in vars(part) for part in parts)
    has_hooks = any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    what = "`nn/`" if is_ours and not has_hooks else "the model"
    return f"{what} was changed, so its own code computes, more slowly"


def varied_ids(count: int, vocab_size: int, pad_id: int, rng: torch.Generator) -> Tensor:
    """Draw ids other than `pad_id`, (count,): the lowest and the highest, like special tokens, then random ones."""
    edges = torch.tensor([*range(vocab_size - 1)[:4], *range(vocab_size - 1)[-4:]], dtype=torch.int64)
    ids = torch.cat((edges, torch.randint(0, max(1, vocab_size - 1), (count,), generator=rng)))[:count]
    return ids + (ids >= pad_id)
