from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import nn

from allyouneed.config import ModelConfig
from allyouneed.nn import DecoderBlock, Transformer, causal_mask
from twins import same_decoder_layer, scatter


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_block_equals_that_of_pytorch(config: ModelConfig, norm: Literal["post", "pre"]) -> None:
    ours = DecoderBlock(replace(config, norm=norm)).eval()
    reference = nn.TransformerDecoderLayer(12, 3, 20, norm_first=norm == "pre", batch_first=True).eval()
    scatter(ours)
    same_decoder_layer(reference, ours)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    expected = reference(x, memory, tgt_mask=~causal_mask(5), memory_key_padding_mask=~real)
    torch.testing.assert_close(ours(x, memory, real[:, None, None], causal_mask(5)), expected)


def test_steps_with_a_state_equal_the_full_pass(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    full, state = model(source, target), model.start(source)
    for position in range(target.size(1)):
        logits, state = model.step(target[:, position], state)
        torch.testing.assert_close(logits, full[:, position])
    assert state.length == target.size(1)


def test_a_state_is_not_changed_by_the_step_it_goes_into(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    _, state = model.step(target[:, 0], model.start(source))
    once, _ = model.step(target[:, 1], state)
    again, _ = model.step(target[:, 1], state)
    assert torch.equal(once, again)


def test_hypotheses_of_one_sentence_share_its_memory(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    """Three hypotheses a sentence, reordered on the way, give what each would give alone."""
    state = model.start(source).reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
    assert state.layers[0].memory_keys.size(0) == 2
    rows = torch.stack([target[0], target[0] + 0, target[0], target[1], target[1], target[1]])
    rows[[1, 4], 1] = 8
    rows[[2, 5], 2] = 3
    _, state = model.step(rows[:, 0], state)
    _, state = model.step(rows[:, 1], state)
    order = torch.tensor([2, 1, 1, 3, 5, 4])
    logits, _ = model.step(rows[order, 2], state.reorder(order))
    expected = model(source[[0, 0, 0, 1, 1, 1]], rows[order][:, :3])[:, 2]
    torch.testing.assert_close(logits, expected)


def test_a_state_can_be_cut_to_some_sentences(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    state = model.start(source).reorder(torch.tensor([0, 0, 1, 1]))
    _, state = model.step(target[[0, 0, 1, 1], 0], state)
    logits, _ = model.step(target[[1, 1], 1], state.keep(torch.tensor([1])))
    torch.testing.assert_close(logits, model(source[[1, 1]], target[[1, 1], :2])[:, 1])
