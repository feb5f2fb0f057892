"""Attention in a packed batch.

A packed batch passes through the same modules as a padded batch. It is a single row of N tokens, and instead of a mask
it has a `PackedMask`, which says which tokens belong together. On a GPU in bfloat16, attention is FlashAttention's
kernel for sequences of different lengths, which needs no mask in memory. Everywhere else, sentences are padded just for
attention; that computation defines the correct result of the kernel.
"""

from collections.abc import Callable
from inspect import signature
from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import causal_mask
from .attention import fused_attention
from .packed_batch import PackedSentences

WIDEST_HEAD = 256  # largest head of FlashAttention, which takes multiples of 8

_kernel: Callable[..., Tensor] | None = None


def load_flash() -> None:
    """Let packed batches on a GPU use FlashAttention, if this PyTorch has it. Importing it takes about a second."""
    global _kernel
    if _kernel is not None:
        return
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:  # PyTorch before 2.10
        return
    if "window_size" in signature(varlen_attn).parameters:  # earlier versions mark causal attention in another way
        _kernel = varlen_attn  # type: ignore[assignment]


class PackedMask(NamedTuple):
    """The mask of packed sentences: a token of `queries` may attend to tokens of `keys` in the same sentence.

    If `causal` is set, no token may attend to later tokens.
    """

    queries: PackedSentences
    keys: PackedSentences
    is_causal: bool

    def padded(self) -> Tensor:
        """Make the mask of the padded batch, (B, 1, 1 or T, S): bool, True = may attend."""
        keys = self.keys
        is_token = torch.zeros(len(keys.offsets) - 1, keys.longest, dtype=torch.bool, device=keys.cells.device)
        is_token = is_token.view(-1).index_fill(0, keys.cells, True).view_as(is_token)[:, None, None]
        if not self.is_causal:
            return is_token
        return is_token & causal_mask(keys.longest, device=is_token.device)


def packed_attention(query: Tensor, key: Tensor, value: Tensor, mask: PackedMask, *, dropout: float = 0.0) -> Tensor:
    """Compute equation 1 for packed sentences. Shapes: query, key and value (1, H, N, K) → (1, H, N, Kv)."""
    if fits_flash(query, value, dropout):
        return flash_attention(query, key, value, mask)
    padded = (mask.queries.pad(query), mask.keys.pad(key), mask.keys.pad(value))
    return mask.queries.pack(fused_attention(*padded, mask.padded(), dropout=dropout))


def fits_flash(query: Tensor, value: Tensor, dropout: float) -> bool:
    """Return True if FlashAttention can compute this: on a GPU, in 16 bits, without dropout of the weights."""
    width = query.size(-1)
    return (
        _kernel is not None
        and query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and width == value.size(-1)
        and width % 8 == 0
        and width <= WIDEST_HEAD
        and dropout == 0
    )


def flash_attention(query: Tensor, key: Tensor, value: Tensor, mask: PackedMask) -> Tensor:
    """Compute `attention` for packed sentences with FlashAttention.

    Shapes: query, key and value (1, H, N, K) → (1, H, N, K).
    """
    tokens = (x[0].transpose(0, 1) for x in (query, key, value))  # (1, H, N, K) → (N, H, K)
    assert _kernel is not None
    attended = _kernel(
        *tokens,
        mask.queries.offsets,
        mask.keys.offsets,
        mask.queries.longest,
        mask.keys.longest,
        window_size=(-1, 0) if mask.is_causal else (-1, -1),
    )
    return attended.transpose(0, 1)[None]
