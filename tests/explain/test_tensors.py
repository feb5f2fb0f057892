import base64
import re
import struct
from dataclasses import replace
from typing import Any

import pytest
import torch

from allyouneed.apps.explain import Trace
from allyouneed.apps.explain.tensors import (
    LIKELY,
    MAX_VALUES,
    MAX_WEIGHTS,
    TOKEN_LIMITS,
    all_tensors,
    attention_tensors,
    count_drawn_tokens,
    pack,
)
from allyouneed.apps.explain.trace import attentions

PIECES = [f"t{number}" for number in range(2_000)]


def unpack(packed: dict[str, Any]) -> torch.Tensor:
    """As the page does."""
    raw, low, high = base64.b64decode(packed["data"]), packed["low"], packed["high"]
    steps = struct.unpack(f"<{len(raw) // 2}h", raw)
    values = [-torch.inf if n == -32768 else low + (n + 32767) / 65534 * (high - low) for n in steps]
    return torch.tensor(values).reshape(packed["shape"])


def test_numbers_are_packed_to_four_digits_and_masked_ones_are_kept() -> None:
    values = torch.randn(3, 5, 7)
    values[0, 1, 2] = -torch.inf
    back = unpack(pack(values))
    assert torch.equal(back.isinf(), values.isinf())
    torch.testing.assert_close(back, values, atol=1e-4, rtol=0)
    assert unpack(pack(torch.full((2, 2), 3.0))).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_every_tensor_of_the_pass_is_there(trace: Trace) -> None:
    tensors = all_tensors(trace, PIECES)
    names = {tensor["name"] for tensor in tensors} | {tensor["name"] for tensor in attention_tensors(trace)}
    assert names == set(trace.recording)
    titles = [(tensor["group"], tensor["title"]) for tensor in tensors]
    assert len(set(titles)) == len(titles)
    assert ("encoder 1", "attention: queries Q") in titles
    assert ("decoder 2", "cross-attention: scores QKᵀ / √d_k") in titles
    assert any(group == "decoder 1" and "hidden layer" in title for group, title in titles)
    assert any(group == "decoder 1" and re.match("self-attention: .* norm", title) for group, title in titles)
    assert "logits" in [title for _, title in titles]


def test_rows_and_columns_are_the_tokens_that_they_stand_for(trace: Trace) -> None:
    sides = {
        "source": len(trace.source_pieces),
        "target": len(trace.decoder_targets),
        "inputs": len(trace.decoder_inputs),
    }
    for tensor in all_tensors(trace, PIECES):
        *_, rows, columns = tensor["values"]["shape"]
        assert rows == sides[tensor["rows"]]
        if isinstance(tensor["columns"], list):
            assert columns == len(tensor["columns"])
        elif tensor["columns"] != "dimension":
            assert columns == sides[tensor["columns"]]
        assert tensor["note"] == ""


@pytest.fixture
def large(trace: Trace) -> Trace:
    """Make a trace with the tensors of a large model and long texts."""
    recording = {
        "source.embedding": torch.randn(100, 512),
        "encoder.layers.0.feed_forward.hidden": torch.randn(100, 4096),
        "decoder.layers.0.self_attention": torch.rand(16, 90, 90),
        "decoder.layers.0.self_attention.scores": torch.rand(16, 90, 90),
        "logits": torch.randn(90, 2_000),
    }
    recording |= {f"encoder.layers.{i}.attention.query": torch.randn(16, 100, 64) for i in range(6)}
    return replace(trace, recording=recording)


def test_large_tensors_are_reduced_and_say_so(large: Trace) -> None:
    tensors = {tensor["name"]: tensor for tensor in all_tensors(large, PIECES)}
    sizes = [torch.Size(tensor["values"]["shape"]).numel() for tensor in tensors.values()]
    assert sum(sizes) <= MAX_VALUES
    hidden = tensors["encoder.layers.0.feed_forward.hidden"]
    assert hidden["values"]["shape"][0] == TOKEN_LIMITS[0]
    assert hidden["note"].startswith("Reduced: the first ")
    assert "of 4,096 columns and the first 64 of 100 tokens" in hidden["note"]
    assert "of 2,000 tokens" in tensors["logits"]["note"]
    assert len(tensors["logits"]["columns"]) <= LIKELY
    (attention,) = attention_tensors(large)
    assert attention["weights"]["shape"] == [16, TOKEN_LIMITS[0], TOKEN_LIMITS[0]]


def test_the_columns_of_reduced_logits_are_the_likeliest_tokens(large: Trace) -> None:
    logits = next(tensor for tensor in all_tensors(large, PIECES) if tensor["name"] == "logits")
    best = {f"t{number}" for number in large.recording["logits"][: TOKEN_LIMITS[0]].argmax(-1).tolist()}
    assert len(best & set(logits["columns"])) >= 0.5 * len(logits["columns"])


def test_weights_are_not_kept_twice(trace: Trace) -> None:
    assert not set(attentions(trace)) & {tensor["name"] for tensor in all_tensors(trace, PIECES)}


def test_of_a_model_with_many_heads_fewer_tokens_are_drawn(trace: Trace) -> None:
    weights = {f"decoder.layers.{i}.self_attention": torch.zeros(16, 100, 100) for i in range(18)}
    drawn = count_drawn_tokens(replace(trace, recording=weights))
    assert drawn < TOKEN_LIMITS[0]
    assert 18 * 16 * drawn**2 <= MAX_WEIGHTS
    assert count_drawn_tokens(trace) == TOKEN_LIMITS[0]
