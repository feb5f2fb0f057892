"""An engine is used only if it equals the definition: what `Transformer.forward` computes is what translates."""

import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from allyouneed.bundle import Bundle
from allyouneed.config import ModelConfig
from allyouneed.decode.beam import Best, top_continuations
from allyouneed.errors import ConfigError, InputError, MissingExtraError
from allyouneed.fast import comparison, definition, selection
from allyouneed.fast import eager as eager_file
from allyouneed.fast.definition import ForwardEngine, StepEngine
from allyouneed.fast.eager import EagerEngine
from allyouneed.fast.selection import (
    SlowerEngineWarning,
    choose_engine,
    compile_kernels,
    make_engine,
    make_ensemble,
    pick_precision,
)
from allyouneed.nn import DecoderBlock, FeedForward, LayerNorm, MultiHeadAttention, Transformer
from allyouneed.nn import position as position_file
from allyouneed.nn import transformer as transformer_file
from allyouneed.translator import Translator
from allyouneed.younger import build_model
from conftest import ADJUSTED, SMALL
from twins import scatter

WAYS: list[dict[str, Any]] = [
    {"precision": precision, "compiled": compiled} for precision in ("float32", "int8") for compiled in (False, True)
]
LARGE = replace(SMALL, vocab_size=8_000, d_model=128, heads=2)


class Tripled(FeedForward):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3 * super().forward(x)


class RootMeanSquare(LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gain * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


class Grouped(MultiHeadAttention):
    """Heads share the keys and values of the first."""

    def project_kv(
        self, key: torch.Tensor, value: torch.Tensor, *, start: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = super().project_kv(key, value, start=start)
        return keys[:, :1].expand_as(keys), values[:, :1].expand_as(values)


class Longer(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def _become(part: torch.nn.Module, kind: type[torch.nn.Module]) -> None:
    part.__class__ = kind


CUSTOM: dict[str, Callable[[Transformer], object]] = {
    "a feed-forward": lambda model: _become(model.get_submodule("decoder.layers.1.feed_forward"), Tripled),
    "an attention": lambda model: _become(model.get_submodule("encoder.layers.0.attention"), Grouped),
    "a cross-attention": lambda model: _become(model.get_submodule("decoder.layers.2.cross_attention"), Grouped),
    "a norm": lambda model: _become(model.get_submodule("decoder.layers.0.feed_forward_residual.norm"), RootMeanSquare),
    "a map": lambda model: _become(model.get_submodule("decoder.layers.0.self_attention.value"), Longer),
    "a closing norm": lambda model: setattr(model.encoder, "norm", torch.nn.Tanh()),
    "a hook": lambda model: model.get_submodule("decoder.layers.0.feed_forward").register_forward_hook(
        lambda module, arguments, result: 2 * result
    ),
    "a forward of its own": lambda model: setattr(
        model.projection, "forward", lambda x: x @ model.projection.table.T / 2
    ),
    "an activation": lambda model: setattr(model.decoder.layers[1].feed_forward, "activation", torch.tanh),
    "an epsilon": lambda model: setattr(model.decoder.layers[1].feed_forward_residual.norm, "eps", 0.5),
    "a missing bias": lambda model: model.get_submodule("decoder.layers.0.feed_forward.inner").register_parameter(
        "bias", None
    ),
}


READ_BY_THE_ENGINE = {"an activation", "an epsilon", "a missing bias"}  # by some engines, which so remain equal


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("change", CUSTOM)
def test_a_part_of_ones_own_is_run_as_it_is(
    change: str, way: dict[str, Any], model: Transformer, source: Tensor, target: Tensor
) -> None:
    scatter(model)
    with torch.inference_mode():
        before = model(source, target)
        CUSTOM[change](model)
        full = model(source, target)
        assert not torch.allclose(before, full, atol=1e-3)
        fast, reason = choose_engine(model, **way)
        if change not in READ_BY_THE_ENGINE:
            assert isinstance(fast, StepEngine)
            assert "its own code computes, more slowly" in reason
        assert fast.precision == "float32" or not reason
        tolerance = 1e-5 if fast.precision == "float32" else 0.2 * float(full.std())
        assert_decodes(fast, source, target, model, tolerance)
        results, _ = fast.log_probabilities(target[:, 0], fast.start(source), torch.tensor([0]))
        expected = full[:, 0].index_fill(1, torch.tensor([0]), -torch.inf).log_softmax(-1)
        torch.testing.assert_close(results, expected, atol=tolerance, rtol=1e-4)


def assert_decodes(engine: Any, source: Tensor, target: Tensor, model: Transformer, tolerance: float = 1e-5) -> None:
    state = engine.start(source)
    for position in range(target.size(1)):
        logits, state = engine.step(target[:, position], state)
        expected = model(source, target[:, : position + 1])[:, -1]
        torch.testing.assert_close(logits, expected, atol=tolerance, rtol=1e-4)


def without_memory(self: DecoderBlock, x: Tensor, *_: Tensor) -> Tensor:
    return self.feed_forward_residual(x, self.feed_forward)


def one_too_far(length: int, *, device: torch.device | None = None) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool, device=device).tril(-1)


OF_FORWARD_ALONE: dict[str, tuple[object, str, Any]] = {
    "a decoder without memory": (DecoderBlock, "forward", without_memory),
    "a mask that is off by one": (transformer_file, "causal_mask", one_too_far),
    "a forward of twice the logits": (
        Transformer, "forward", lambda self, source, target: 2 * self.decode(target, self.encode(source)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("change", OF_FORWARD_ALONE)
def test_where_forward_and_step_differ_forward_computes(
    change: str,
    way: dict[str, Any],
    model: Transformer,
    source: Tensor,
    target: Tensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scatter(model)
    monkeypatch.setattr(*OF_FORWARD_ALONE[change])
    engine, reason = choose_engine(model, **way)
    assert isinstance(engine, ForwardEngine)
    assert reason.startswith("Transformer.step gives other logits than Transformer.forward, by ")
    assert reason.endswith(" of their deviation; Transformer.forward computes every step, slowly")
    with torch.inference_mode():
        assert_decodes(engine, source, target, model)
        order = torch.tensor([1, 0])
        last, both = target[:, 0], engine.start(source).reorder(torch.tensor([0, 0, 1, 1]))
        _, both = engine.step(last.repeat_interleave(2), both)
        logits, _ = engine.step(target[order, 1], both.reorder(torch.tensor([0, 2])).keep(order))
        torch.testing.assert_close(logits, model(source[order], torch.stack((last[order], target[order, 1]), 1))[:, -1])


def near(length: int, *, device: torch.device | None = None) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool, device=device).tril().triu(-31)


def close(encoding: Tensor, start: int, length: int) -> Tensor:
    return encoding[torch.arange(start, start + length).clamp(max=40)]


def without_unknown(ids: Tensor, pad_id: int) -> Tensor:
    return ((ids != pad_id) & (ids != 3))[:, None, None, :]


SELDOM: dict[str, tuple[object, str, Any, type]] = {
    "a window of 32 tokens": (transformer_file, "causal_mask", near, ForwardEngine),
    "no positions after 40": (position_file, "_cut", close, StepEngine),
    "a mask of unknown tokens": (transformer_file, "padding_mask", without_unknown, StepEngine),
}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("change", SELDOM)
def test_an_edit_that_few_tokens_meet_is_seen(
    change: str, way: dict[str, Any], config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    *edit, expected = SELDOM[change]
    model = build_model(replace(config, max_length=100, vocab_size=4_000, pad_id=0))
    scatter(model)
    monkeypatch.setattr(*edit)
    assert type(choose_engine(model, **way)[0]) is expected


def test_an_edit_of_the_choice_of_continuations_is_seen(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    def second_best(totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        best, parents, tokens = top_continuations(totals, log_probabilities, count + 1)
        return [row[1:] for row in best], [row[1:] for row in parents], [row[1:] for row in tokens]

    for file in (comparison, definition, eager_file):
        monkeypatch.setattr(file, "top_continuations", second_best)
    engine, reason = choose_engine(model, compiled=True)
    assert type(engine) is EagerEngine
    assert "chooses other continuations than decode/beam.py" in reason


def test_a_step_that_is_not_that_of_forward_is_told(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Transformer.step
    monkeypatch.setattr(Transformer, "step", lambda self, last, state: step(self, last.flip(0), state))
    with pytest.warns(SlowerEngineWarning, match=r"Transformer.step gives other logits"):
        assert isinstance(make_engine(model), ForwardEngine)


def test_int8_that_is_far_from_the_model_is_not_used(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.fast.quantization.quantize", lambda weight: (weight.sign().char(), weight[:, 0]))
    engine, reason = choose_engine(model, precision="int8")
    assert (type(engine), engine.precision) == (EagerEngine, "float32")
    assert reason.startswith("int8 gives other logits")


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("sizes", [{}, {"norm": "pre"}, {"max_length": 1}, *ADJUSTED], ids=str)
def test_an_unchanged_model_gets_the_engine_that_was_meant(
    config: ModelConfig, sizes: dict[str, Any], way: dict[str, Any]
) -> None:
    model = build_model(replace(config, **sizes)).train()
    random = torch.get_rng_state()
    engine, reason = choose_engine(model, **way)
    assert (reason, engine.precision, engine.compiled) == ("", way["precision"], way["compiled"])
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training


def test_a_beam_goes_through_parts_of_ones_own(bundle: Bundle) -> None:
    _become(bundle.model.get_submodule("decoder.layers.1.feed_forward"), Tripled)
    with pytest.warns(SlowerEngineWarning, match="the model was changed, so its own code computes"):
        translator = Translator(bundle, precision="int8").using(beam=3, nbest=2)
    together = translator.translate(["abcab", "jihg", "dd"])
    assert together == [translator(text) for text in ("abcab", "jihg", "dd")]
    assert translator.precision == "float32"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_engine_of_weights_that_have_changed_begins_no_search(
    model: Transformer, way: dict[str, Any], source: Tensor, target: Tensor
) -> None:
    def train() -> None:
        model(source, target).square().mean().backward()  # type: ignore[no-untyped-call]
        torch.optim.SGD(model.parameters(), lr=0.1).step()

    def replace_bias() -> None:
        model.encoder.get_submodule("layers.0.feed_forward.inner").bias = torch.nn.Parameter(torch.ones(SMALL.d_ff))

    for change in (train, lambda: scatter(model), lambda: model.load_state_dict(model.state_dict()), replace_bias):
        engine = make_ensemble([model, model], **way)
        engine.start(source)
        change()
        with pytest.raises(InputError, match="weights of the model have changed since its engine was made; make a new"):
            engine.start(source)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The precisions of which the kernels are in the cache, as if compiling them took no time."""
    made: set[str] = set()
    monkeypatch.setattr("allyouneed.fast.kernel_cache.is_compiled", made.__contains__)
    monkeypatch.setattr("allyouneed.fast.kernel_cache.fill_kernel_cache", made.add)
    return made


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ModelConfig, str]]:
    """Of which models and precisions the engines were timed."""
    noted: list[tuple[ModelConfig, str]] = []
    monkeypatch.setattr(selection, "time_engines", lambda *what: noted.append(what))
    return noted


def test_the_default_is_compiled_where_the_kernels_are_in_the_cache(compiled: set[str], timed: list[Any]) -> None:
    model, lines = build_model(LARGE).eval(), list[str]()
    assert pick_precision(model) == "int8"
    assert not make_engine(model, precision="int8", compiled="auto").compiled
    compile_kernels(LARGE, lines.append)
    assert compiled == {"int8"}
    assert lines == ["Compiling the kernels for translating, once for this machine; up to half a minute."]
    assert make_engine(model, precision="int8", compiled="auto").compiled
    assert not make_engine(model, precision="float32", compiled="auto").compiled
    assert not make_engine(model, precision="int8", compiled=False).compiled
    compile_kernels(LARGE, lines.append)
    assert len(lines) == 1
    compile_kernels(LARGE, lines.append, precision="float32")
    compile_kernels(SMALL, lines.append)
    assert compiled == {"int8", "float32"}
    assert len(lines) == 2
    assert timed == [(LARGE, "int8"), (LARGE, "int8"), (LARGE, "float32"), (SMALL, "float32")]


def test_what_would_not_be_used_is_not_compiled(
    compiled: set[str], timed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = list[str]()
    compile_kernels(LARGE, lines.append, device=torch.device("meta"))
    compile_kernels(LARGE, lines.append, precision="int4")
    assert timed == []
    monkeypatch.setattr(selection, "is_installed", lambda library: False)
    compile_kernels(LARGE, lines.append)
    assert (lines, compiled, timed) == ([], set(), [(LARGE, "int8")])


class Unwritable(ModuleType):
    def __getattr__(self, name: str) -> None:
        raise RuntimeError("cannot cache function: no locator available")


def test_without_a_folder_for_compiled_code_pytorch_answers_and_compiled_is_refused(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = list[str]()
    for name in ("compiled", "kernel_cache"):
        monkeypatch.delattr(f"allyouneed.fast.{name}", raising=False)
        monkeypatch.setitem(sys.modules, f"allyouneed.fast.{name}", Unwritable(name))
    assert not make_engine(model, precision="int8", compiled="auto").compiled
    with pytest.raises(ConfigError, match="no locator available; set NUMBA_CACHE_DIR to a folder that can be written"):
        make_engine(model, compiled=True)
    compile_kernels(LARGE, lines.append)
    assert lines[1].endswith("no locator available); PyTorch translates, more slowly.")


def test_compiling_needs_numba(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compiled", "kernel_cache"):
        monkeypatch.delattr(f"allyouneed.fast.{name}", raising=False)
        monkeypatch.setitem(sys.modules, f"allyouneed.fast.{name}", None)
    with pytest.raises(MissingExtraError, match=r"compiled code needs the extra fast.* install 'allyouneed\[fast\]'"):
        make_engine(model, compiled=True)
    assert not make_engine(model, precision="int8", compiled="auto").compiled


def test_auto_is_int8_only_where_it_pays(config: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    large = build_model(LARGE)
    assert pick_precision(build_model(config)) == "float32"
    assert pick_precision(large) == "int8"
    monkeypatch.setattr(selection, "supports_int8", lambda device: False)
    assert pick_precision(large) == "float32"


def test_an_unknown_precision_is_refused(model: Transformer) -> None:
    with pytest.raises(ConfigError, match='precision must be "auto", "float32" or "int8"; got \'int4\''):
        make_engine(model, precision="int4")
    with pytest.raises(ConfigError, match='compiled must be True, False or "auto"; got 7'):
        make_engine(model, compiled=7)  # type: ignore[arg-type]
