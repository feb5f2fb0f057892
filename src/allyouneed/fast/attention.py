"""Equation 1 with PyTorch's fused kernel, which without dropout never holds all attention weights in memory.

`nn/attention.py` defines the result.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn import MultiHeadAttention, Transformer


@contextmanager
def using_attention(model: Transformer, attention: Callable[..., Tensor]) -> Iterator[None]:
    """Make every attention of `model` compute equation 1 with the function `attention`, inside the `with` block."""
    parts = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    before = [vars(part).get("attention") for part in parts]
    for part in parts:
        part.attention = attention
    try:
        yield
    finally:
        for part, custom in zip(parts, before, strict=True):
            vars(part).pop("attention") if custom is None else vars(part).update(attention=custom)


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *, dropout: float = 0.0
) -> Tensor:
    """Compute the same as `nn.attention.attention`, with the fused kernel."""
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        # On a CPU, the kernel's backward pass is 8 times slower in bfloat16 than in float32 (torch 2.13).
        with torch.autocast("cpu", enabled=False):
            return fused_attention(query.float(), key.float(), value.float(), attn_mask, dropout=dropout).bfloat16()
    bias = None if attn_mask is None else attention_bias(attn_mask, query.dtype)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)


def attention_bias(attn_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask into an attention bias, which is added to the scores: 0 where True, and very low where False."""
    # Half the lowest number makes any weight 0. The sum does not overflow to −∞, which would give NaN for a query with
    # every key masked.
    low = torch.finfo(dtype).min / 2
    attn_mask = torch.atleast_2d(attn_mask)  # type: ignore[no-untyped-call]  # the fused kernel needs two axes
    return torch.zeros(attn_mask.shape, dtype=dtype, device=attn_mask.device).masked_fill_(~attn_mask, low)
