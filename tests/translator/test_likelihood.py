"""A model to read with: without dropout, beside threads that train it or hook it."""

import torch

from allyouneed.nn import Transformer
from allyouneed.translator.likelihood import eval_copy


def test_it_computes_as_the_model_in_eval_mode_with_the_same_weights(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    copy = eval_copy(model.train())
    assert not any(part.training for part in copy.modules())
    assert all(part.training for part in model.modules())
    assert [id(weight) for weight in copy.parameters()] == [id(weight) for weight in model.parameters()]
    assert copy.target_embedding is copy.source_embedding
    assert copy(source, target).equal(model.eval()(source, target))


def test_it_has_the_hooks_of_the_model_and_new_ones_are_its_own(model: Transformer, source: torch.Tensor) -> None:
    seen: list[str] = []
    model.encoder.register_forward_hook(lambda *_: seen.append("of both"))
    copy = eval_copy(model)
    copy.encoder.register_forward_hook(lambda *_: seen.append("of the copy"))
    copy.encode(source)
    assert seen == ["of both", "of the copy"]
    model.encode(source)
    assert seen == ["of both", "of the copy", "of both"]


def test_nothing_is_hooked_in_the_model_itself(model: Transformer) -> None:
    eval_copy(model).encoder.register_forward_hook(lambda *_: None)
    assert not any(part._forward_hooks for part in model.modules())
