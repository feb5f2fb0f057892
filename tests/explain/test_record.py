import torch

from allyouneed.explain import recorded_attention
from allyouneed.nn import MultiHeadAttention, Transformer, attention_weights


def test_the_weights_of_every_attention_are_noted(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    with recorded_attention(model) as seen:
        model(source, target)
    assert {name: tuple(weights.shape) for name, weights in seen.items()} == {
        **{f"encoder.layers.{i}.attention": (2, 3, 6, 6) for i in range(2)},
        **{f"decoder.layers.{i}.self_attention": (2, 3, 7, 7) for i in range(3)},
        **{f"decoder.layers.{i}.cross_attention": (2, 3, 7, 6) for i in range(3)},
    }
    for weights in seen.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert (seen["encoder.layers.0.attention"][1, :, :, 4:] == 0).all()  # padding
    assert (seen["decoder.layers.2.self_attention"].triu(1) == 0).all()  # the future


def test_what_is_noted_is_what_the_model_used(model: Transformer, source: torch.Tensor) -> None:
    part = model.get_submodule("encoder.layers.0.attention")
    assert isinstance(part, MultiHeadAttention)
    x = torch.randn(2, 6, 12)
    with recorded_attention(model) as seen:
        output = part(x, x, x)
    weights = seen["encoder.layers.0.attention"]
    keys, values = part.offer(x, x)
    torch.testing.assert_close(weights, attention_weights(part._split(part.query(x)), keys))
    torch.testing.assert_close(part.output((weights @ values).transpose(1, 2).flatten(2)), output)


def test_recording_changes_nothing_and_leaves_nothing_behind(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    before = model(source, target)
    with recorded_attention(model) as seen:
        assert torch.equal(model(source, target), before)
    seen.clear()
    model(source, target)
    assert seen == {}
