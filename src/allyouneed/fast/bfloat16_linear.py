"""The linear map of rows, and the gradients of its weights, for the fast passes through a model."""

import torch
import torch.nn.functional as F
from torch import Tensor

# oneDNN refuses products in bfloat16 on a processor without instructions for them, such as one with only AVX2.
HAS_ONEDNN = bool(torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported())  # type: ignore[no-untyped-call]


def linear_of_rows(rows: Tensor, weight: Tensor, bias: Tensor, *, relu: bool = False) -> Tensor:
    """Compute rows @ weight.T + bias, then ReLU if `relu` is set; in bfloat16 in one pass of oneDNN, where possible."""
    if rows.dtype == torch.bfloat16 and HAS_ONEDNN:
        after = "relu" if relu else "none"
        return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, after, [], "")  # type: ignore[no-any-return]
    result = F.linear(rows, weight, bias)
    return result.relu_() if relu else result


def weight_gradients(grad_output: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the gradients of weight and bias."""
    columns = grad_output.mT
    if grad_output.size(1) < rows.size(1):
        columns = columns.contiguous()  # takes less time than transposing inside the product
    return columns @ rows, grad_output.sum(0)
