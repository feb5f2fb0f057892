from concurrent.futures import ThreadPoolExecutor

import torch

from allyouneed.apps.explain import recorded, recorded_attention
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
    queries, keys, values = part.project(x, x, x)
    torch.testing.assert_close(weights, attention_weights(queries, keys))
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


def test_everything_is_recorded_in_its_shape(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    with recorded(model) as seen:
        model(source, target)
    shapes = {name: tuple(value.shape) for name, value in seen.items()}
    read, written = (2, 6, 12), (2, 7, 12)
    expected: dict[str, tuple[int, ...]] = {"encoder": read, "decoder": written, "logits": (2, 7, 13)}
    for side, shape in (("source", read), ("target", written)):
        expected |= {f"{side}.embedding": shape, f"{side}.position": shape[1:], f"{side}.sum": shape}

    def attended(part: str, queries: int, keys: int) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {f"{part}.{name}": (2, 3, keys, 4) for name in ("key", "value")}
        shapes |= {f"{part}.{name}": (2, 3, queries, 4) for name in ("query", "heads")}
        return shapes | {part: (2, 3, queries, keys), f"{part}.scores": (2, 3, queries, keys)}

    for i in range(2):
        layer = f"encoder.layers.{i}"
        expected |= attended(f"{layer}.attention", 6, 6) | {f"{layer}.feed_forward.hidden": (2, 6, 20)}
        expected |= dict.fromkeys([f"{layer}.attention.output", f"{layer}.feed_forward.output"], read)
        expected |= dict.fromkeys([f"{layer}.attention_residual", f"{layer}.feed_forward_residual"], read)
    for i in range(3):
        layer = f"decoder.layers.{i}"
        expected |= attended(f"{layer}.self_attention", 7, 7) | attended(f"{layer}.cross_attention", 7, 6)
        expected |= {f"{layer}.feed_forward.hidden": (2, 7, 20), f"{layer}.logits": (2, 7, 13)}
        parts = ("self_attention", "cross_attention", "feed_forward")
        expected |= {f"{layer}.{part}.output": written for part in parts}
        expected |= {f"{layer}.{part}_residual": written for part in parts}
    norms = {f"{name}.norm": shape for name, shape in expected.items() if name.endswith("_residual")}
    if model.config.norm == "pre":
        norms |= {"encoder.norm": read, "decoder.norm": written}
    assert shapes == expected | norms


def test_what_is_recorded_adds_up(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    before = model(source, target)
    with recorded(model) as seen:
        assert torch.equal(model(source, target), before)
    assert torch.equal(seen["logits"], before)
    for side in ("source", "target"):
        assert torch.equal(seen[f"{side}.sum"], seen[f"{side}.embedding"] + seen[f"{side}.position"])
    assert torch.equal(seen["decoder.layers.2.logits"], seen["logits"])  # the last lens is no lens
    layer = "encoder.layers.1"
    stream = seen[f"{layer}.attention_residual"] + seen[f"{layer}.feed_forward.output"]
    if model.config.norm == "post":
        stream = model.get_submodule(f"{layer}.feed_forward_residual.norm")(stream)
    torch.testing.assert_close(seen[f"{layer}.feed_forward_residual"], stream)
    hidden = seen[f"{layer}.feed_forward.hidden"]
    assert (hidden >= 0).all()
    outer = model.get_submodule(f"{layer}.feed_forward.outer")
    torch.testing.assert_close(outer(hidden), seen[f"{layer}.feed_forward.output"])


def test_scores_queries_keys_and_values_are_those_of_equation_1(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    with recorded(model) as seen:
        model(source, target)
    for part in ("encoder.layers.1.attention", "decoder.layers.0.self_attention", "decoder.layers.2.cross_attention"):
        torch.testing.assert_close(seen[f"{part}.scores"].softmax(-1), seen[part])
        joined = (seen[part] @ seen[f"{part}.value"]).transpose(1, 2).flatten(2)
        torch.testing.assert_close(seen[f"{part}.heads"].transpose(1, 2).flatten(2), joined)
        output = model.get_submodule(f"{part}.output")
        torch.testing.assert_close(output(joined), seen[f"{part}.output"])
    assert (seen["decoder.layers.0.self_attention.scores"][..., 0, 1] == -torch.inf).all()


def test_a_recording_ends_with_its_block(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    with recorded(model) as seen:
        model(source, target)
    seen.clear()
    model(source, target)
    assert seen == {}
    assert not any(part._forward_hooks for part in model.modules())


def test_calls_of_other_threads_are_not_recorded(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    with recorded(model) as seen:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(model, source, target).result()
        assert seen == {}
        model(source, target)
        assert "logits" in seen
