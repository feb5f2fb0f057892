"""A sound model passes; each fault, planted, is found and named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from allyouneed.apps.check import model as checks
from allyouneed.apps.check.model import CheckResult, Ids, random_ids
from allyouneed.decode import Hypothesis, SearchLimits
from allyouneed.nn import PositionalEncoding, Transformer, padding_mask, transformer
from allyouneed.nn.module import Module

Check = Callable[[Transformer, Ids], CheckResult]
ALL: list[Check] = [
    checks.no_leak_from_the_future,
    checks.padding_changes_nothing,
    checks.batch_changes_nothing,
    checks.cache_matches_full_pass,
    checks.beam_of_one_is_greedy,
    checks.heads_and_units_are_alive,
]


@pytest.fixture
def ids(model: Transformer) -> Ids:
    return random_ids(model.config, sos_id=1, eos_id=2)


def verdict(check: Check, model: Transformer, ids: Ids) -> CheckResult:
    with torch.inference_mode():
        return check(model, ids)


@pytest.mark.parametrize("check", ALL)
def test_a_sound_model_is_found_sound(check: Check, model: Transformer, ids: Ids) -> None:
    outcome = verdict(check, model, ids)
    assert outcome.passed, outcome.explanation


@pytest.mark.parametrize("check", ALL)
def test_so_is_one_with_two_vocabularies(check: Check, model: Transformer) -> None:
    config = replace(
        model.config, vocab_size=39, pad_id=38, target_vocab_size=13, target_pad_id=12, tied_embeddings="target"
    )
    outcome = verdict(check, Transformer(config).eval(), random_ids(config, sos_id=1, eos_id=2))
    assert outcome.passed, outcome.explanation


def test_so_is_a_very_certain_one(model: Transformer, ids: Ids) -> None:
    """Its attention weights of some earlier tokens round to zero, though its mask is right."""
    for name, parameter in model.named_parameters():
        if ".query." in name or ".key." in name:
            parameter.data.mul_(100)
    assert verdict(checks.no_leak_from_the_future, model, ids).passed


def test_the_sentences_have_different_lengths_and_their_signs(model: Transformer, ids: Ids) -> None:
    assert len({len(source) for source in ids.sources}) == len(ids.sources)
    for sentence in ids.sources + ids.targets:
        assert (sentence[0], sentence[-1]) == (1, 2)
        assert not {0, 1, 2} & set(sentence[1:-1])
    assert (ids.batch(model.config).source == 0).any()


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (lambda length: torch.ones(length, length).tril(1).bool(), "future"),
        (lambda length: torch.ones(length, length).tril(-1).bool(), "future"),  # the first spreads evenly
        (lambda length: torch.ones(length, length).bool(), "future"),
        (lambda length: torch.eye(length).bool(), "past"),
    ],
    ids=["one too far", "one too short", "none", "itself alone"],
)
def test_a_wrong_mask_over_the_past_is_found(
    mask: Callable[[int], Tensor], words: str, model: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformer, "causal_mask", lambda length, past=0, device=None: mask(length))
    outcome = verdict(checks.no_leak_from_the_future, model, ids)
    assert not outcome.passed
    assert words in outcome.explanation


def test_ignored_padding_is_found(model: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "padding_mask", lambda x, pad_id: torch.ones_like(x).bool()[:, None, None])
    outcome = verdict(checks.padding_changes_nothing, model, ids)
    assert not outcome.passed
    assert "padding" in outcome.explanation


def test_another_pad_id_is_found(model: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    right = padding_mask
    monkeypatch.setattr(transformer, "padding_mask", lambda x, pad_id: right(x, pad_id + 5))
    assert not verdict(checks.padding_changes_nothing, model, ids).passed


def test_sentences_that_are_mixed_are_found(model: Transformer, ids: Ids) -> None:
    class Mixing(Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + x.mean(0, keepdim=True)

    model.encoder.norm = Mixing()
    outcome = verdict(checks.batch_changes_nothing, model, ids)
    assert not outcome.passed
    assert "mixed" in outcome.explanation


def test_a_position_that_is_off_while_decoding_is_found(
    model: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = PositionalEncoding.forward
    monkeypatch.setattr(
        PositionalEncoding, "forward", lambda self, x, start=0: forward(self, x, start=start + (x.size(1) == 1))
    )
    outcome = verdict(checks.cache_matches_full_pass, model, ids)
    assert not outcome.passed
    assert "at token 1" in outcome.explanation


def test_a_search_that_errs_is_found(model: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_: Any, limits: SearchLimits) -> list[Hypothesis]:
        return [Hypothesis([5], 0.0, 0.0)] * limits.sentences

    monkeypatch.setattr(checks, "greedy_search", wrong)
    assert not verdict(checks.beam_of_one_is_greedy, model, ids).passed


@pytest.mark.parametrize("part", ["value", "output"])
def test_a_dead_head_is_found(part: str, model: Transformer, ids: Ids) -> None:
    weight = model.get_submodule("decoder.layers.1.cross_attention").get_submodule(part).weight
    assert isinstance(weight, Tensor)
    with torch.no_grad():
        (weight[8:] if part == "value" else weight[:, 8:]).zero_()
    outcome = verdict(checks.heads_and_units_are_alive, model, ids)
    assert not outcome.passed
    assert "decoder.layers.1.cross_attention, head 3." in outcome.explanation


def test_dead_units_are_found(model: Transformer, ids: Ids) -> None:
    bias = model.get_submodule("encoder.layers.1.feed_forward.inner").bias
    assert isinstance(bias, Tensor)
    with torch.no_grad():
        bias.fill_(-100.0)
    outcome = verdict(checks.heads_and_units_are_alive, model, ids)
    assert not outcome.passed
    assert "encoder.layers.1.feed_forward, 20 of 20 units" in outcome.explanation
