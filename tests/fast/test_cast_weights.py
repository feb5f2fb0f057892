"""All weights are cast together, and their gradients come back to the parameters they are of."""

from typing import Any

import torch

from allyouneed.fast.cast_weights import cast_weights
from allyouneed.nn import Transformer


def test_every_weight_inside_the_layers_is_cast_and_gets_its_own_gradient(model: Transformer) -> None:
    weights = cast_weights(model, torch.float64)
    attention: Any = model.encoder.layers[0].attention
    weight, bias = weights[attention.query]
    maps = (attention.query, attention.key, attention.value)
    assert torch.equal(weight, torch.cat([linear.weight for linear in maps]).double())
    assert torch.equal(bias, torch.cat([linear.bias for linear in maps]).double())
    total = sum((tensor.square().sum() for pair in weights.values() for tensor in pair), torch.zeros(()))
    total.backward()  # type: ignore[no-untyped-call]
    for name, parameter in (*model.encoder.named_parameters(), *model.decoder.named_parameters()):
        if "norm" not in name and "gain" not in name:
            torch.testing.assert_close(parameter.grad, 2 * parameter.detach(), msg=name)
