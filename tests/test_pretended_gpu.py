"""Everything that translates or looks into a model, on a pretended GPU: no mixed devices, and one wait a step."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

import allyouneed
from allyouneed import Bundle, Recipe, Transformer, Translator, recipe_path
from allyouneed.apps.cli.demo import _draw
from allyouneed.apps.explain import build_page, sharpest_claims, trace_translation
from allyouneed.apps.explain.film import film_frame
from allyouneed.config import ModelConfig
from allyouneed.data.pairs import Pair
from allyouneed.train.gradients import autocast_dtype
from allyouneed.translator.definition import DefinitionStep
from allyouneed.translator.static_step import StaticDecoder, StaticEngine
from allyouneed.younger import build_model
from conftest import ADJUSTED
from pretended_gpu import GPU, PretendedGPU, is_marked, pretend_gpu

DATES = Path(allyouneed.__file__).parent / "apps/cli/dates"
DAYS = ["1845-01-05", "2024-02-29", "1999-12-31"]
EXPECTED = ["January 5, 1845", "February 29, 2024", "December 31, 1999"]

SEARCHES: list[dict[str, Any]] = [
    {"beam": 1},
    {"beam": 4},
    {"sample": True, "top_k": 5},
    {"beam": 3, "no_repeat_ngram_size": 5, "min_length": 5, "max_length": 30},
]


@pytest.fixture
def gpu() -> Iterator[PretendedGPU]:
    with mock.patch.object(StaticDecoder, "capture"), pretend_gpu() as gpu:  # recording takes a real one
        yield gpu


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the number of rows of each step of a search."""
    made: list[int] = []
    step = DefinitionStep.__call__

    def counted(self: DefinitionStep, hypotheses: Any, tokens: Any) -> None:
        made.append(len(tokens))
        step(self, hypotheses, tokens)

    monkeypatch.setattr(DefinitionStep, "__call__", counted)
    return made


def test_mixed_devices_are_refused_and_waits_are_counted(gpu: PretendedGPU) -> None:
    here, there = torch.ones(3), torch.ones(3, device="cuda")
    assert (here.device.type, there.device) == ("cpu", GPU)
    with pytest.raises(RuntimeError, match="same device"):
        there + here
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()
    moved = there + here.pin_memory().to(GPU, non_blocking=True)
    assert is_marked(moved.view(1, 3).T)
    assert not gpu.waits
    assert float(moved.sum()) == 6.0
    there[[0]] = 2.0
    assert there[there > 1].tolist() == [2.0]
    torch.tensor([1.0], device=GPU)
    here.to(GPU)
    assert gpu.waits.total() == 6


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_a_search_waits_once_in_a_step(
    options: dict[str, Any], precision: str, gpu: PretendedGPU, steps: list[int]
) -> None:
    translator = Translator(Bundle.load(DATES, device=GPU), precision=precision).using(**options)
    gpu.waits.clear()
    steps.clear()
    assert translator.translate(DAYS) == EXPECTED
    assert translator.precision == precision
    assert len(steps) >= 17
    assert gpu.waits.total() == len(steps)


@pytest.mark.parametrize("options", [SEARCHES[0], SEARCHES[3]], ids=str)
def test_what_a_graph_would_record_waits_nowhere(
    options: dict[str, Any], gpu: PretendedGPU, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0
    step = StaticDecoder._step

    def noted(self: StaticDecoder) -> None:
        nonlocal runs
        before = gpu.waits.total()
        step(self)
        assert gpu.waits.total() == before
        runs += 1

    monkeypatch.setattr(StaticDecoder, "_step", noted)
    bundle = Bundle.load(DATES, device=GPU)
    translator = Translator(bundle, precision="float32").using(**options)
    assert isinstance(translator.engine, StaticEngine)
    gpu.waits.clear()
    steps.clear()
    runs = 0
    assert translator.translate(DAYS) == EXPECTED
    assert gpu.waits.total() == len(steps) == runs + 1


def test_an_ensemble_waits_once_for_each_of_its_models(gpu: PretendedGPU, steps: list[int]) -> None:
    bundle = Bundle.load(DATES, device=GPU)
    gpu.waits.clear()
    steps.clear()
    assert Translator(bundle, bundle).translate(DAYS) == EXPECTED
    assert gpu.waits.total() == len(steps)


def test_scores_alignments_glossaries_and_pictures_mix_no_devices(gpu: PretendedGPU, tmp_path: Path) -> None:
    bundle = Bundle.load(DATES, device=GPU)
    translator = Translator(bundle, precision="float32")
    assert "".join(translator.stream(DAYS[0])) == EXPECTED[0]
    ((scored),) = translator.score([(DAYS[0], EXPECTED[0])])
    assert sum(scored.log_probabilities) > -0.1
    assert [one.text for one in translator.translations(DAYS, align="words")] == EXPECTED
    assert translator.using(glossary={"1845": "1846"})(DAYS[0]).endswith("1846")
    assert translator.using(repetition_penalty=1.01).translate(DAYS) == EXPECTED
    _draw(bundle, DAYS[0], EXPECTED[0], tmp_path / "picture.png")
    claims = sharpest_claims(translator, [Pair(DAYS[0], EXPECTED[0])])
    assert EXPECTED[0] in build_page(trace_translation(translator, DAYS[0]), translator, claims)
    assert film_frame(bundle, DAYS[0])["output"] == EXPECTED[0]
    assert gpu.waits


def test_a_row_of_table_3_is_trained_in_bfloat16(gpu: PretendedGPU) -> None:
    recipe = Recipe.read(recipe_path("base"))
    model = Transformer(replace(recipe.model, vocab_size=10, d_ff=8, encoder_layers=1, decoder_layers=1))
    assert autocast_dtype(recipe.train.precision, model, GPU) == torch.bfloat16


@pytest.mark.parametrize("options", [{}, {"positions": "learned", "norm": "pre"}, ADJUSTED[2]], ids=str)
def test_a_model_on_a_gpu_takes_ids_of_the_cpu(config: ModelConfig, options: dict[str, Any], gpu: PretendedGPU) -> None:
    model = build_model(replace(config, **options)).eval()
    source, target = torch.tensor([[1, 5, 6, 2], [1, 4, 2, 0]]), torch.tensor([[1, 6, 5], [1, 4, 2]])
    expected = model(source, target)
    there: Transformer = model.to(GPU)
    for ids in ((source, target), (source.to(GPU), target.to(GPU))):
        logits = there(*ids)
        assert logits.device == GPU
        torch.testing.assert_close(logits.cpu(), expected)
