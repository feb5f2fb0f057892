"""Query-key norm and rotary positions of queries and keys as the engines have them: those of all heads side by side.

`nn/query_key_norm.py` and `nn/rotary.py` are the definition. A key is normalized and rotated once, when it is computed;
the KV cache keeps the result.
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from ..config import ModelConfig
from ..nn.attention import MultiHeadAttention
from ..nn.position import sinusoids
from ..nn.query_key_norm import EPS, QueryKeyNormAttention


def stack_gains(attention: MultiHeadAttention) -> Tensor:
    """The gains of query-key norm for queries and for keys, (2, K); without it none, (0, K)."""
    if isinstance(attention, QueryKeyNormAttention):
        return torch.stack((attention.query_gain, attention.key_gain)).detach()
    return attention.key.weight.new_empty(0, attention.key.out_features // attention.heads)


def rotation_table(config: ModelConfig) -> Tensor:
    """The cosines and sines that rotate a vector at each position, (L, 2, K); without rotary positions (0, 2, K).

    Number i of a rotated vector is its number i times the cosine plus the other number of its pair times the sine,
    which has its sign here. The last number of an odd width is its own pair, with a sine of 0.
    """
    width = config.d_k or config.d_model // config.heads
    if config.positions != "rotary":
        return torch.empty(0, 2, width)
    table = sinusoids(config.max_length, width - width % 2)
    sine, cosine = table[:, 0::2], table[:, 1::2]
    cosines, sines = torch.cat((cosine, cosine), 1), torch.cat((-sine, sine), 1)
    return torch.stack((F.pad(cosines, (0, width % 2), value=1.0), F.pad(sines, (0, width % 2))), 1)


def adjust_heads(x: Tensor, heads: int, gains: Tensor, rotation: Tensor | None) -> None:
    """Normalize queries or keys with `gains`, if there are any, then rotate them, in place.

    Computed in the dtype of `gains` and rounded once. Shapes: x (B, L, n·H·K); gains (n, K) or (0, K); rows of
    `rotation_table` that broadcast to (B, L, 2, K).
    """
    if not len(gains) and rotation is None:
        return
    split = x.view(*x.shape[:-1], -1, heads, gains.size(-1))  # (B, L, n·H·K) → (B, L, n, H, K)
    adjusted = split.to(gains.dtype)
    if len(gains):
        adjusted = F.rms_norm(adjusted, gains.shape[1:], None, EPS) * gains[:, None]
    if rotation is not None:
        cosines, sines = rotation[..., None, None, :].unbind(-4)  # (B, L, 2, K) → (B, L, 1, 1, K) twice
        swapped = adjusted.index_select(-1, _other_of_pair(gains.size(-1), x.device))
        adjusted = adjusted * cosines + swapped * sines
    split.copy_(adjusted)


@lru_cache(64)
def _other_of_pair(width: int, device: torch.device) -> Tensor:
    """For each number of a vector the index of the other number of its pair, (K,)."""
    indices, half = torch.arange(width, device=device), width // 2
    indices[: 2 * half] = indices[: 2 * half].roll(half)
    return indices
