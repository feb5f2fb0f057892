"""Faults of the quick ways, of long sentences, of losses and of the length penalty: each, planted, is found."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from allyouneed.fast.kv_cache import CachedState
from torch import Tensor

from allyouneed.apps.check import engines
from allyouneed.apps.check import model as checks
from allyouneed.apps.check.model import CheckResult, Ids, random_ids
from allyouneed.decode import beam
from allyouneed.fast import compiled, loss
from allyouneed.fast import quantization as int8
from allyouneed.nn import DecoderState, Transformer, position, transformer
from allyouneed.younger import build_model
from allyouneed.younger.rotary import rotate
from conftest import ALL_OPTIONS, SMALL


@pytest.fixture(scope="module")
def long() -> Transformer:
    torch.manual_seed(0)
    return build_model(replace(SMALL, vocab_size=60, d_model=48, d_ff=64, max_length=50)).eval()


@pytest.fixture
def ids(long: Transformer) -> Ids:
    return random_ids(long.config, sos_id=1, eos_id=2)


def names(verdicts: Any) -> list[str]:
    return [verdict.check for verdict in verdicts if not verdict.passed]


@pytest.mark.parametrize("sizes", [{}, ALL_OPTIONS], ids=["plain", "adjusted"])
def test_every_engine_of_a_sound_model_is_found_sound(long: Transformer, ids: Ids, sizes: dict[str, Any]) -> None:
    model = build_model(replace(long.config, **sizes)).eval()
    results = list(engines.engines_agree(model, ids))
    assert [verdict.check for verdict in results] == [
        "plain", "fast", "compiled", "int8 maps", "int8", "int8 compiled",
    ]  # fmt: skip
    assert names(results) == []
    assert names([engines.positions_differ(model), engines.beam_search_is_exhaustive()]) == []
    assert names([engines.losses_match_definition(model, ids)]) == []


def test_two_sentences_are_long(ids: Ids) -> None:
    assert sorted(map(len, ids.sources))[-2:] == [41, 42]


def test_a_mask_that_slips_beyond_16_words_is_found(
    long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slipping(length: int, *, device: torch.device | None = None) -> Tensor:
        mask = torch.ones(length, length).tril()
        mask[16:] = torch.ones(length, length).tril(1)[16:]
        return mask.bool()

    monkeypatch.setattr(transformer, "causal_mask", slipping)
    with torch.inference_mode():
        assert not checks.no_leak_from_the_future(long, ids).passed


def test_positions_that_begin_anew_at_16_are_found(long: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrapped(encoding: Tensor, start: int, length: int) -> Tensor:
        return encoding[torch.arange(start, start + length) % 16]

    monkeypatch.setattr(position, "_cut", wrapped)
    outcome = engines.positions_differ(long)
    assert not outcome.passed
    assert "positions 0 and 16 of the source" in outcome.explanation


def test_so_are_rotary_positions_but_not_sound_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model(replace(SMALL, positions="rotary", query_key_norm=True)).eval()
    assert engines.positions_differ(model).passed
    monkeypatch.setattr(engines, "rotate", lambda x, start=0: rotate(x))
    assert "a decoding step adds a wrong position vector" in engines.positions_differ(model).explanation
    monkeypatch.setattr(engines, "rotate", lambda x, start=0: x)
    assert "positions 0 and 1 of the source" in engines.positions_differ(model).explanation


def test_a_source_that_is_reversed_beyond_20_words_is_found(
    long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = Transformer.encode
    monkeypatch.setattr(Transformer, "encode", lambda self, x: encode(self, x.flip(1) if x.size(1) > 20 else x))
    with torch.inference_mode():
        assert not checks.batch_changes_nothing(long, ids).passed


@pytest.mark.parametrize("way", ["repeats", "does nothing"])
def test_a_model_that_does_not_reorder_its_past_is_found(
    way: str, long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No engine is compared with such a model: its own step is wrong, and `Transformer.forward` computes."""
    reorder = DecoderState.reorder

    def off(self: DecoderState, hypotheses: Tensor) -> DecoderState:
        return reorder(self, hypotheses) if way == "repeats" and not self.length else self

    monkeypatch.setattr(DecoderState, "reorder", off)
    plain, fast = engines.engines_agree(long, ids)
    assert (plain.check, plain.passed) == ("plain", False)
    assert "the reordering of the KV cache is wrong" in plain.explanation
    assert (fast.check, fast.passed) == ("fast", None)
    assert "Transformer.forward computes every step" in fast.explanation


def test_a_past_that_is_not_reordered_is_found(long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one hypothesis a sentence it would not show."""
    reorder = CachedState.reorder

    def off(self: CachedState, hypotheses: Tensor) -> CachedState:
        return reorder(self, hypotheses if self.ancestry_mask is None else torch.arange(len(hypotheses)))

    monkeypatch.setattr(CachedState, "reorder", off)
    assert names(engines.engines_agree(long, ids)) == ["fast"]


@pytest.mark.parametrize("of", [int8, compiled])
def test_int8_scales_that_are_a_tenth_off_are_found(
    of: Any, long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded = int8.quantize

    def larger(weight: Tensor) -> tuple[Tensor, Tensor]:
        numbers, scale = rounded(weight)
        return numbers, 1.1 * scale

    monkeypatch.setattr(of, "quantize", larger)
    results = names(engines.engines_agree(long, ids))
    assert results[0] == ("int8 maps" if of is int8 else "int8 compiled")


def over_padding(logits: Tensor, target: Tensor, *, smoothing: float, pad_id: int) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=smoothing)


def smoothed_over_padding(logits: Tensor, target: Tensor, *, smoothing: float, pad_id: int) -> Tensor:
    words = target != pad_id
    return F.cross_entropy(logits[words], target[words]) * (1 - smoothing) - smoothing * logits.log_softmax(-1).mean()


@pytest.mark.parametrize("wrong", [over_padding, smoothed_over_padding])
@pytest.mark.parametrize("way", ["mean_loss", "fused_linear_cross_entropy"])
def test_a_loss_over_padding_is_found(
    wrong: Callable[..., Tensor], way: str, long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    def projected(vectors: Tensor, table: Tensor, target: Tensor, **others: Any) -> Tensor:
        return wrong(vectors @ table.T, target, **others)

    monkeypatch.setattr(engines, way, wrong if way == "mean_loss" else projected)
    outcome = engines.losses_match_definition(long, ids)
    assert not outcome.passed
    assert way in outcome.explanation


def test_a_gradient_of_the_wrong_sign_is_found(long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    into = loss._into_gradient

    def upwards(logits: Tensor, *others: Any) -> Tensor:
        results = into(logits, *others)
        logits.neg_()
        return results

    monkeypatch.setattr(loss, "_into_gradient", upwards)
    assert "gradient" in engines.losses_match_definition(long, ids).explanation


def test_a_length_penalty_the_other_way_round_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def inverted(length: int, *, alpha: float) -> float:
        return math.pow((5 + length) / 6, -alpha)

    def searched(step: Any, state: Any, limits: Any, options: Any) -> Any:
        return beam.beam_search(step, state, limits, replace(options, penalty=inverted))

    monkeypatch.setattr(engines, "beam_search", searched)
    outcome: CheckResult = engines.beam_search_is_exhaustive()
    assert not outcome.passed
