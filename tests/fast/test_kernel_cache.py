"""What is compiled once serves models of every size, and gives the numbers of PyTorch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.config import ModelConfig
from allyouneed.data.batch import pad
from allyouneed.decode import BeamOptions, Hypothesis, SearchLimits, beam_search, greedy_search
from allyouneed.fast import kernel_cache
from allyouneed.fast.compiled import CompiledInt8Engine
from allyouneed.fast.eager import EagerEngine
from allyouneed.fast.engine import AnyEngine, EngineStep
from allyouneed.fast.selection import make_engine
from allyouneed.younger import build_model
from conftest import ADJUSTED, ALL_OPTIONS
from twins import scatter


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is written down which kernels are compiled: in a folder of the test's own."""
    real = kernel_cache._marker
    monkeypatch.setattr(kernel_cache, "_marker", lambda *key: tmp_path / real(*key).name)
    return tmp_path


@pytest.mark.parametrize("sizes", [{"norm": "pre"}, {"norm": "post"}, ALL_OPTIONS], ids=str)
def test_all_is_compiled_that_a_model_of_any_depth_needs(
    config: ModelConfig, sizes: dict[str, Any], cache: Path, source: torch.Tensor
) -> None:
    from allyouneed.fast import kernels

    kernel_cache.fill_kernel_cache("int8")
    kernel_names = (
        "encode_tokens", "decode_tokens", "decode_and_project", "map_rows", "adjust_rows", "top_continuations_rows",
    )  # fmt: skip
    before = {name: len(getattr(kernels, name).signatures) for name in kernel_names}
    engine = make_engine(build_model(replace(config, **sizes)).eval(), precision="int8", compiled=True)
    for rows in (source[:1], source):
        translations(engine, rows)
    assert {name: len(getattr(kernels, name).signatures) for name in kernel_names} == before


def test_another_precision_is_not_compiled(cache: Path) -> None:
    kernel_cache.fill_kernel_cache("int8")
    assert kernel_cache.is_compiled("int8")
    assert not kernel_cache.is_compiled("float32")


@pytest.mark.parametrize(
    "sizes",
    [{}, {"norm": "pre", "activation": "gelu"}, {"d_k": 5, "d_v": 7, "activation": "silu"}, *ADJUSTED],
    ids=str,
)
def test_both_int8_engines_give_the_same_logits_to_the_bit(sizes: dict[str, Any]) -> None:
    """So the best hypotheses of 60 sources with random weights, in batches of other sizes, are the same."""
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=700, d_model=64, d_ff=130, heads=4, encoder_layers=2, decoder_layers=2)
    model = build_model(replace(config, max_length=40, **sizes)).eval()
    scatter(model)
    sources = [[1, *torch.randint(3, 700, (length,)).tolist(), 2] for length in torch.randint(2, 20, (60,)).tolist()]
    engines = EagerEngine(model, precision="int8"), CompiledInt8Engine(model, precision="int8")
    eager, compiled = (
        [one for i in range(0, 60, size) for one in best_hypotheses(engine, pad(sources[i : i + size], 0))]
        for size, engine in zip((20, 12), engines, strict=True)
    )
    assert [one.ids for one in eager] == [one.ids for one in compiled]
    assert [one.log_probability for one in eager] == pytest.approx([one.log_probability for one in compiled], abs=1e-4)
    with torch.inference_mode():
        one, other = (engine.step(torch.ones(60).long(), engine.start(pad(sources, 0)))[0] for engine in engines)
    assert torch.equal(one, other)


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
