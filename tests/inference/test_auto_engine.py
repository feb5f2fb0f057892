"""Compiled by default: what answers before the kernels are compiled, and after."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.data.batch import pad
from allyouneed.decode import BeamOptions, Hypothesis, SearchLimits, beam_search, greedy_search
from allyouneed.errors import ConfigError
from allyouneed.inference import AnyEngine, EagerEngine, EngineStep, make_engine, warm_up
from allyouneed.inference.auto_engine import AutoEngine
from allyouneed.inference.compiled import make_compiled_engine
from allyouneed.nn import Transformer
from allyouneed.younger import build_model
from conftest import ADJUSTED, ALL_OPTIONS
from twins import scatter

ANY_SOURCE = torch.tensor([[1, 5, 2]])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is written down which kernels are compiled: in a folder of the test's own, with VNNI or without."""
    real = warm_up._marker
    monkeypatch.setattr(warm_up, "_marker", lambda *key: tmp_path / real(*key).name)
    monkeypatch.setattr("allyouneed.inference.auto_engine.has_vnni", lambda: True)
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The background processes that would have been started."""
    calls: list[Any] = []
    monkeypatch.setattr(warm_up, "start_in_background", lambda *key: calls.append(key))
    return calls


def auto_engine(model: Transformer) -> AutoEngine:
    """The default engine, after its first search."""
    engine = make_engine(model, precision="int8", compiled="auto")
    assert isinstance(engine, AutoEngine)
    engine.start(ANY_SOURCE)
    assert not engine.loading.is_alive()
    return engine


def loaded(model: Transformer) -> AutoEngine:
    engine = auto_engine(model)
    engine.start(ANY_SOURCE)
    engine.loading.join()
    return engine


def test_with_a_cold_cache_pytorch_answers_until_another_process_has_compiled(
    model: Transformer, source: torch.Tensor, cache: Path, started: list[Any]
) -> None:
    engine = auto_engine(model)
    expected = translations(EagerEngine(model, precision="int8"), source)
    assert translations(engine, source) == expected
    assert not engine.compiled
    warm_up.warm_up("int8")  # what the process does
    engine.loading.join()
    assert started == [("int8",)]
    assert engine.compiled
    assert translations(engine, source) == expected


def test_a_cold_cache_that_nobody_fills_leaves_pytorch(
    model: Transformer, cache: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.inference.auto_engine.COMPILING_SECONDS", 0.0)
    assert not loaded(model).compiled


def test_a_warm_cache_is_loaded_and_then_answers(
    model: Transformer, source: torch.Tensor, cache: Path, started: list[Any]
) -> None:
    warm_up.warm_up("int8")
    engine = loaded(model)
    assert started == []
    assert engine.compiled
    assert translations(engine, source) == translations(make_compiled_engine(model, precision="int8"), source)


@torch.inference_mode()
def test_a_search_is_computed_by_one_engine_to_its_end(
    model: Transformer, source: torch.Tensor, cache: Path, started: list[Any]
) -> None:
    """The compiled kernels are loaded while it goes on; a search that begins later has them."""
    engine = auto_engine(model)
    state, last = engine.start(source), torch.ones(len(source), dtype=torch.int64)
    logits, state = engine.step(last, state)
    warm_up.warm_up("int8")
    engine.loading.join()
    eager = EagerEngine(model, precision="int8")
    expected, expected_state = eager.step(last, eager.start(source))
    assert torch.equal(logits, expected)
    for _ in range(3):
        logits, state = engine.step(last, state)
        expected, expected_state = eager.step(last, expected_state)
        assert torch.equal(logits, expected)
    assert isinstance(state.engine, EagerEngine)
    assert not state.engine.compiled
    assert engine.start(source).engine.compiled


@pytest.mark.parametrize("sizes", [{"norm": "pre"}, {"norm": "post"}, ALL_OPTIONS], ids=str)
def test_warming_up_compiles_all_that_a_model_of_any_depth_needs(
    config: ModelConfig, sizes: dict[str, Any], cache: Path, source: torch.Tensor
) -> None:
    from allyouneed.inference import kernels

    warm_up.warm_up("int8")
    kernel_names = (
        "encode_tokens", "decode_tokens", "decode_and_project", "map_rows", "adjust_rows", "top_continuations_rows",
    )  # fmt: skip
    before = {name: len(getattr(kernels, name).signatures) for name in kernel_names}
    engine = make_compiled_engine(build_model(replace(config, **sizes)).eval(), precision="int8")
    for rows in (source[:1], source):
        translations(engine, rows)
    assert {name: len(getattr(kernels, name).signatures) for name in kernel_names} == before


def test_another_precision_is_cold(cache: Path) -> None:
    warm_up.warm_up("int8")
    assert warm_up.is_warm("int8")
    assert not warm_up.is_warm("float32")


def test_an_installed_numba_that_cannot_be_imported_leaves_pytorch(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("allyouneed.inference.auto_engine.has_vnni", lambda: True)
    monkeypatch.delattr("allyouneed.inference.warm_up", raising=False)
    monkeypatch.setitem(sys.modules, "allyouneed.inference.warm_up", None)
    assert not loaded(model).compiled


def test_without_a_folder_for_compiled_code_pytorch_answers_and_compiled_is_refused(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unwritable(ModuleType):
        def __getattr__(self, name: str) -> None:
            raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("allyouneed.inference.auto_engine.has_vnni", lambda: True)
    monkeypatch.setitem(sys.modules, "allyouneed.inference.compiled", Unwritable("compiled"))
    assert not loaded(model).compiled
    with pytest.raises(ConfigError, match="no locator available; set NUMBA_CACHE_DIR to a folder that can be written"):
        make_engine(model, compiled=True)


def test_auto_is_pytorch_where_compiling_does_not_pay(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_engine(model, precision="float32", compiled="auto"), EagerEngine)
    monkeypatch.setattr("allyouneed.inference.auto_engine.has_vnni", lambda: False)
    assert isinstance(make_engine(model, precision="int8", compiled="auto"), EagerEngine)


@pytest.mark.parametrize(
    "sizes",
    [{}, {"norm": "pre", "activation": "gelu"}, {"d_k": 5, "d_v": 7, "activation": "silu"}, *ADJUSTED],
    ids=str,
)
def test_both_int8_engines_give_the_same_numbers_to_the_bit(sizes: dict[str, Any]) -> None:
    """The best hypotheses of 60 sources with random weights, in batches of other sizes, and their log-probabilities."""
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=700, d_model=64, d_ff=130, heads=4, encoder_layers=2, decoder_layers=2)
    model = build_model(replace(config, max_length=40, **sizes)).eval()
    scatter(model)
    sources = [[1, *torch.randint(3, 700, (length,)).tolist(), 2] for length in torch.randint(2, 20, (60,)).tolist()]
    eager, compiled = (
        [one for i in range(0, 60, size) for one in best_hypotheses(engine, pad(sources[i : i + size], 0))]
        for size, engine in (
            (20, EagerEngine(model, precision="int8")),
            (12, make_compiled_engine(model, precision="int8")),
        )
    )
    assert eager == compiled


@pytest.mark.parametrize("sizes", [{}, ALL_OPTIONS], ids=["plain", "adjusted"])
def test_float32_translations_do_not_depend_on_the_engine(sizes: dict[str, Any]) -> None:
    """60 sources, with random weights."""
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=1_000, d_model=64, d_ff=256, heads=4, encoder_layers=2, decoder_layers=2)
    model = build_model(replace(config, max_length=40, **sizes)).eval()
    sources = torch.randint(3, 1_000, (60, 12))
    assert translations(make_engine(model), sources) == translations(make_engine(model, compiled=True), sources)


@torch.inference_mode()
def best_hypotheses(engine: AnyEngine, source: torch.Tensor) -> list[Hypothesis]:
    limits = SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.full((len(source),), 12))
    step, state = EngineStep(engine, banned_ids=(0, 1)), engine.start(source)
    return [best for best, *_ in beam_search(step, state, limits, BeamOptions(beam=4, alpha=0.6))]


@torch.inference_mode()
def translations(engine: AnyEngine, source: torch.Tensor) -> list[list[int]]:
    limits = SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.full((len(source),), 8))
    step, state = EngineStep(engine, banned_ids=(0, 1)), engine.start(source)
    return [result.ids for result in greedy_search(step, state, limits)]
