"""Value residual (Zhou et al., 2024), an option: a layer attends to its values mixed with those of the first layer.

    V_l → (1 − λ_l) V_l + λ_l V_1    for l > 1

λ_l is learned, one number a layer, from 0.5 on. V_1 is of the same kind of attention: self-attention of the encoder,
self-attention of the decoder, or cross-attention. A KV cache keeps the mixed values. The paper's model does not use
it.
"""

import torch
from torch import Tensor, nn


class ValueResidual(nn.Module):
    """The mix of the values of a layer, not the first, with those of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.full((1,), 0.5))

    def forward(self, values: Tensor, first_values: Tensor) -> Tensor:
        """Shapes: (B, S, H·K), the heads side by side, the same in and out."""
        return torch.lerp(values, first_values, self.share.to(values.dtype))
