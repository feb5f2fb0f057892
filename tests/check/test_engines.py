"""Faults of the quick ways, of long sentences, of losses and of the length penalty: each, planted, is found."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from allyouneed.apps.check import engines
from allyouneed.apps.check import model as checks
from allyouneed.apps.check.model import CheckResult, Ids, random_ids
from allyouneed.decode import beam
from allyouneed.fast import loss
from allyouneed.nn import Transformer, position, transformer
from allyouneed.nn.decoder import DecoderCache
from allyouneed.translator.definition import DefinitionEngine, DefinitionStep
from allyouneed.younger import build_model, rotary
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
    return [verdict.check for verdict in verdicts if verdict.passed is False]


@pytest.mark.parametrize("sizes", [{}, ALL_OPTIONS], ids=["plain", "adjusted"])
def test_every_engine_of_a_sound_model_is_found_sound(long: Transformer, ids: Ids, sizes: dict[str, Any]) -> None:
    model = build_model(replace(long.config, **sizes)).eval()
    results = list(engines.engines_agree(model, ids))
    assert results[0].check == "steps"
    assert results[0].passed
    assert names(results) == []
    assert names([engines.positions_differ(model), engines.beam_search_is_exhaustive()]) == []
    assert names([engines.losses_match_definition(model, ids)]) == []


def test_two_sentences_are_long(ids: Ids) -> None:
    assert sorted(map(len, ids.sources))[-2:] == [41, 42]


def test_a_mask_that_slips_beyond_16_words_is_found(
    long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slipping(length: int, past: int = 0, *, device: torch.device | None = None) -> Tensor:
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
    assert "positions 0 and 16" in outcome.explanation


def test_positions_that_a_decoding_step_starts_anew_are_found(
    long: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position, "_cut", lambda encoding, start, length: encoding[:length])
    assert "decoding step" in engines.positions_differ(long).explanation


@pytest.mark.parametrize("sizes", [{}, {"query_key_norm": True}, {"max_length": 2_000}], ids=str)
def test_positions_that_only_attention_knows_must_differ_there(
    sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build_model(replace(SMALL, positions="rotary", **sizes)).eval()
    assert engines.positions_differ(model).passed
    monkeypatch.setattr(rotary, "rotate", lambda x, start=0: x)
    assert "positions 0 and 1 " in engines.positions_differ(model).explanation
    monkeypatch.setattr(
        rotary, "rotate", lambda x, start=0: rotate(x[..., :7, :], start=start)[..., torch.arange(x.size(-2)) % 7, :]
    )
    assert "positions 0 and 7 " in engines.positions_differ(model).explanation


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
    """With one hypothesis a sentence it would not show."""
    select = DecoderCache.select

    def off(self: DecoderCache, hypotheses: Tensor, sentences: Tensor | None = None) -> None:
        chosen = torch.arange(len(hypotheses)) if way == "does nothing" else hypotheses.sort().values
        select(self, chosen if self.length > 1 else hypotheses, sentences)

    monkeypatch.setattr(DecoderCache, "select", off)
    steps = next(engines.engines_agree(long, ids))
    assert (steps.check, steps.passed) == ("steps", False)
    assert "KV cache" in steps.explanation


@pytest.mark.parametrize(("precision", "wrong"), [("float32", 1.001), ("int8", 1.1)])
def test_an_engine_whose_probabilities_are_off_is_found(
    precision: str, wrong: float, long: Transformer, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OffStep(DefinitionStep):
        def log_probabilities(self) -> Tensor:
            return wrong * super().log_probabilities()

    class Off:
        def __init__(self, precision: str) -> None:
            self.precision, self.engine = precision, DefinitionEngine(long)

        def start(self, sources: Any) -> OffStep:
            return OffStep(self.engine, sources, (), True)

    monkeypatch.setattr(engines, "make_engine", lambda models, chosen: Off(precision))
    assert names(engines.engines_agree(long, ids)) == ["float32", "int8"]


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

    def searched(step: Any, limits: Any, options: Any) -> Any:
        return beam.beam_search(step, limits, replace(options, penalty=inverted))

    monkeypatch.setattr(engines, "beam_search", searched)
    outcome: CheckResult = engines.beam_search_is_exhaustive()
    assert not outcome.passed
