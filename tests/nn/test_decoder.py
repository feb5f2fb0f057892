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


def test_steps_with_a_cache_equal_the_full_pass(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    full, memory, cache = model(source, target), model.encode(source), model.new_cache()
    for position in range(target.size(1)):
        logits = model.decode(target[:, position, None], memory, cache)
        torch.testing.assert_close(logits[:, 0], full[:, position])
    assert cache.length == target.size(1)


@pytest.mark.parametrize("parts", [[1, 6], [3, 4], [2, 2, 3]])
def test_several_tokens_at_once_equal_the_full_pass(
    model: Transformer, source: torch.Tensor, target: torch.Tensor, parts: list[int]
) -> None:
    memory, cache = model.encode(source), model.new_cache()
    logits = [model.decode(part, memory, cache) for part in torch.split(target, parts, 1)]
    torch.testing.assert_close(torch.cat(logits, 1), model(source, target))


def test_the_memory_is_projected_once(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    memory, cache = model.encode(source), model.new_cache()
    model.decode(target[:, :2], memory, cache)
    projected = cache.blocks[0].memory.kept
    model.decode(target[:, 2:3], memory, cache)
    assert projected
    assert cache.blocks[0].memory.kept is projected


def test_hypotheses_of_one_sentence_share_its_memory(
    model: Transformer, source: torch.Tensor, target: torch.Tensor
) -> None:
    """Three hypotheses a sentence, reordered on the way, give what each would give alone."""
    memory, cache = model.encode(source), model.new_cache()
    rows = torch.stack([target[0], target[0], target[0], target[1], target[1], target[1]])
    rows[[1, 4], 1] = 8
    rows[[2, 5], 2] = 3
    model.decode(rows[:, :1], memory, cache)
    model.decode(rows[:, 1:2], memory, cache)
    order = torch.tensor([2, 1, 1, 3, 5, 4])
    cache.select(order)
    assert [len(block.memory.kept[0]) for block in cache.blocks if block.memory.kept] == [2, 2, 2]
    logits = model.decode(rows[order, 2:3], memory, cache)
    expected = model(source[[0, 0, 0, 1, 1, 1]], rows[order][:, :3])[:, 2:]
    torch.testing.assert_close(logits, expected)


def test_sentences_can_leave(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> None:
    memory, cache = model.encode(source), model.new_cache()
    model.decode(target[[0, 0, 1, 1], :1], memory, cache)
    kept = torch.tensor([1])
    cache.select(torch.tensor([2, 3]), kept)
    logits = model.decode(target[[1, 1], 1:2], memory.select(kept), cache)
    torch.testing.assert_close(logits, model(source[[1, 1]], target[[1, 1], :2])[:, 1:])
