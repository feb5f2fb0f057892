import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from allyouneed.apps.explain.recording import recorded
from allyouneed.config import ModelConfig
from allyouneed.nn import Transformer
from allyouneed.nn.position import sinusoids
from allyouneed.younger import build_model
from allyouneed.younger.rotary import NoPositions, RotaryAttention, rotate
from twins import scatter


@pytest.fixture
def rotary(config: ModelConfig) -> Transformer:
    torch.manual_seed(1)
    model = build_model(replace(config, positions="rotary")).eval()
    scatter(model)
    return model


def test_a_quarter_turn_by_hand() -> None:
    """A head of width 2 has one frequency, 1: at position 1 the pair is turned by one radian."""
    turned = rotate(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    torch.testing.assert_close(turned, torch.tensor([[1.0, 0.0], [math.cos(1), math.sin(1)]]))


@pytest.mark.parametrize("width", [2, 7, 8])
def test_scores_depend_on_the_distance_alone(width: int) -> None:
    query, key = torch.randn(width), torch.randn(width)
    scores = rotate(query.expand(9, width)) @ rotate(key.expand(9, width)).T
    for distance in range(-8, 9):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert not torch.allclose(scores[0, 0], scores[0, 1])


def test_rotating_keeps_lengths_and_turns_back() -> None:
    x = torch.randn(2, 3, 5, 7)
    torch.testing.assert_close(rotate(x).norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(rotate(rotate(x, start=4), start=4, turn=-1), x)


def test_the_angles_are_computed_once_and_those_of_a_translation_serve_a_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with torch.inference_mode():
        rotate(torch.randn(3, 22))
    monkeypatch.setattr("allyouneed.younger.rotary.sinusoids", None)
    x = torch.randn(5, 22, requires_grad=True)
    rotate(x, start=4).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None


def test_positions_beyond_the_first_table() -> None:
    x, start = torch.randn(5, 6), 4094
    one_by_one = [rotate(row[None], start=start + i) for i, row in enumerate(x)]
    torch.testing.assert_close(rotate(x, start=start), torch.cat(one_by_one))


def test_the_last_queries_are_those_of_the_last_positions() -> None:
    attention, x = RotaryAttention(d_model=12, heads=3).eval(), torch.randn(2, 5, 12)
    whole = attention(x, x, x)
    torch.testing.assert_close(attention(x[:, 3:], x, x), whole[:, 3:])


def test_steps_with_a_cache_equal_the_full_pass(rotary: Transformer, source: Tensor, target: Tensor) -> None:
    full, memory, cache = rotary(source, target), rotary.encode(source), rotary.new_cache()
    for position in range(target.size(1)):
        logits = rotary.decode(target[:, position, None], memory, cache)
        torch.testing.assert_close(logits[:, 0], full[:, position])


def test_order_matters_without_position_vectors_and_later_tokens_do_not(
    rotary: Transformer, source: Tensor, target: Tensor
) -> None:
    assert isinstance(rotary.source_position, NoPositions)
    assert not rotary.source_position.encoding.any()
    assert not torch.allclose(rotary(source.flip(1)[:1], target[:1]), rotary(source[:1], target[:1]))
    changed = target.clone()
    changed[:, 2:] = 3
    torch.testing.assert_close(rotary(source, changed)[:, :2], rotary(source, target)[:, :2])


def test_sines_and_cosines_are_added_beside_it(rotary: Transformer, config: ModelConfig, source: Tensor) -> None:
    both = build_model(replace(config, positions="sinusoidal-rotary")).eval()
    both.load_state_dict(rotary.state_dict())
    assert isinstance(both.encoder.layers[0].attention, RotaryAttention)
    added = both.source_position(torch.zeros(1, source.size(1), config.d_model))[0]
    torch.testing.assert_close(added, sinusoids(source.size(1), config.d_model))
    assert not torch.allclose(both.encode(source).hidden_states, rotary.encode(source).hidden_states)


def test_it_has_the_weights_of_the_papers_model(rotary: Transformer, config: ModelConfig) -> None:
    paper = build_model(config)
    assert rotary.state_dict().keys() == paper.state_dict().keys()
    assert not any(isinstance(part, RotaryAttention) for part in paper.modules())


def test_recorded_weights_are_those_of_the_rotated_scores(rotary: Transformer, source: Tensor, target: Tensor) -> None:
    with recorded(rotary) as seen:
        rotary(source[:1], target[:1])
    name = "encoder.layers.0.attention"
    torch.testing.assert_close(seen[name], seen[f"{name}.scores"].softmax(-1))
