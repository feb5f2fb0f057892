"""Query-key norm and rotary positions as the engines have them: all heads side by side.

`nn/query_key_norm.py` and `nn/rotary.py` are the definition. A key is normalized and rotated once, when it is computed;
the KV cache keeps the result.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..config import ModelConfig
from ..nn.attention import MultiHeadAttention
from ..nn.position import sinusoids
from ..younger.query_key_norm import EPS, QueryKeyNormAttention


def stack_gains(attention: MultiHeadAttention) -> Tensor:
    """The gains of query-key norm for queries and for keys, (2, K); without it none, (0, K)."""
    if isinstance(attention, QueryKeyNormAttention):
        return torch.stack((attention.query_gain, attention.key_gain)).detach()
    return attention.key.weight.new_empty(0, attention.key.out_features // attention.heads)


def rotation_table(config: ModelConfig) -> Tensor:
    """The cosines and sines of the angles of each position, (L, 2, K / 2); without rotary positions (0, 2, 0)."""
    if not config.is_rotary:
        return torch.empty(0, 2, 0)
    width = config.d_k or config.d_model // config.heads
    table = sinusoids(config.max_length, width - width % 2)
    return torch.stack((table[:, 1::2], table[:, 0::2]), 1)


def adjust_heads(x: Tensor, heads: int, gains: Tensor, rotation: Tensor | None) -> None:
    """Normalize queries and keys with `gains`, if there are any, then rotate them, in place.

    Computed in the dtype of `gains` and rounded once. Shapes: x (B, L, 2·H·K); gains (2, K) or (0, K); rows of
    `rotation_table` that broadcast to (B, L, 2, K / 2).
    """
    if not len(gains) and rotation is None:
        return
    split = x.view(*x.shape[:-1], 2, heads, gains.size(-1))  # (B, L, 2·H·K) → (B, L, 2, H, K)
    adjusted = split.to(gains.dtype)
    if len(gains):
        adjusted = F.rms_norm(adjusted, gains.shape[1:], None, EPS).mul_(gains[:, None])
    if rotation is not None:
        cosines, sines = rotation[..., None, None, :].unbind(-4)  # (B, L, 2, K/2) → (B, L, 1, 1, K/2) twice
        half = cosines.size(-1)
        first, second = adjusted[..., :half], adjusted[..., half : 2 * half]
        rotated = (first * cosines).addcmul_(second, sines, value=-1), (first * sines).addcmul_(second, cosines)
        first.copy_(rotated[0])
        second.copy_(rotated[1])
    split.copy_(adjusted)
