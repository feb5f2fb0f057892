"""Compiled by default: what answers before the kernels are compiled, and after."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.decode import SearchLimits, greedy_search
from allyouneed.inference import AnyEngine, EagerEngine, EngineStep, make_engine, warm_up
from allyouneed.inference.auto_engine import AutoEngine
from allyouneed.inference.compiled import CompiledEngine
from allyouneed.nn import Transformer


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is written down which kernels are compiled: in a folder of the test's own, with VNNI or without."""
    real = warm_up._marker
    monkeypatch.setattr(warm_up, "_marker", lambda *key: tmp_path / real(*key).name)
    monkeypatch.setattr("torch.cpu._is_vnni_supported", lambda: True)
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The background processes that would have been started."""
    calls: list[Any] = []
    monkeypatch.setattr(warm_up, "start_in_background", lambda *key: calls.append(key))
    return calls


def loaded(model: Transformer) -> AutoEngine:
    engine = make_engine(model, precision="int8", compiled="auto")
    assert isinstance(engine, AutoEngine)
    engine.loading.join()
    return engine


def test_a_cold_cache_is_filled_in_the_background_while_pytorch_answers(
    model: Transformer, source: torch.Tensor, cache: Path, started: list[Any]
) -> None:
    engine = loaded(model)
    assert started == [("int8", model.config.decoder_layers)]
    assert not engine.compiled
    expected = translations(EagerEngine(model, precision="int8"), source)
    assert translations(engine, source) == expected


def test_a_warm_cache_is_loaded_and_then_answers(
    model: Transformer, source: torch.Tensor, cache: Path, started: list[Any]
) -> None:
    warm_up.warm_up("int8", model.config.decoder_layers)
    engine = loaded(model)
    assert started == []
    assert engine.compiled
    assert translations(engine, source) == translations(CompiledEngine(model, precision="int8"), source)


def test_warming_up_compiles_all_that_a_translation_needs(
    model: Transformer, cache: Path, source: torch.Tensor
) -> None:
    from allyouneed.inference import kernels

    warm_up.warm_up("int8", model.config.decoder_layers)
    kernel_names = ("encode_tokens", "decode_tokens", "decode_and_project", "map_rows", "top_continuations_rows")
    before = {name: len(getattr(kernels, name).signatures) for name in kernel_names}
    engine = CompiledEngine(model, precision="int8")
    for rows in (source[:1], source):
        translations(engine, rows)
    assert {name: len(getattr(kernels, name).signatures) for name in kernel_names} == before


def test_other_kernels_or_another_depth_are_cold(cache: Path) -> None:
    warm_up.warm_up("int8", 1)
    assert warm_up.is_warm("int8", 1)
    assert not warm_up.is_warm("int8", 2)
    assert not warm_up.is_warm("float32", 1)


def test_an_installed_numba_that_cannot_be_imported_leaves_pytorch(
    model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cpu._is_vnni_supported", lambda: True)
    monkeypatch.delattr("allyouneed.inference.warm_up", raising=False)
    monkeypatch.setitem(sys.modules, "allyouneed.inference.warm_up", None)
    assert not loaded(model).compiled


def test_auto_is_pytorch_where_compiling_does_not_pay(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_engine(model, precision="float32", compiled="auto"), EagerEngine)
    monkeypatch.setattr("torch.cpu._is_vnni_supported", lambda: False)
    assert isinstance(make_engine(model, precision="int8", compiled="auto"), EagerEngine)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_translations_do_not_depend_on_the_engine(precision: str) -> None:
    """60 sources, with random weights: many of their steps are near ties. In int8 one of these may turn."""
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=1_000, d_model=64, d_ff=256, heads=4, encoder_layers=2, decoder_layers=2)
    model = Transformer(replace(config, max_length=40)).eval()
    sources = torch.randint(3, 1_000, (60, 12))
    eager, compiled = (make_engine(model, precision=precision, compiled=compiled) for compiled in (False, True))
    pairs = zip(translations(eager, sources), translations(compiled, sources), strict=True)
    assert sum(one != other for one, other in pairs) <= (2 if precision == "int8" else 0)


@torch.inference_mode()
def translations(engine: AnyEngine, source: torch.Tensor) -> list[list[int]]:
    limits = SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.full((len(source),), 8))
    step, state = EngineStep(engine, banned_ids=(0, 1)), engine.start(source)
    return [result.ids for result in greedy_search(step, state, limits)]
