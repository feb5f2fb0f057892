"""A search in NumPy finds what the same search finds in PyTorch."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from allyouneed.config import DecodeConfig
from allyouneed.decode import SearchLimits, search
from allyouneed.decode.beam import top_continuations
from allyouneed.fast.engine import EngineStep
from allyouneed.fast.selection import make_engine
from allyouneed.light import search as light_search
from allyouneed.light.search import LightLimits, LightModel, LightStep
from allyouneed.nn import Transformer
from conftest import SMALL
from light.test_engine import in_numpy
from twins import scatter

SOURCES = [[1, 5, 6, 2], [1, 7, 2], [1, 9, 4, 4, 8, 2]]
LENGTHS = [9, 6, 12]


@pytest.fixture(scope="module")
def model() -> Transformer:
    model = Transformer(SMALL).eval()
    scatter(model)
    return model


@given(
    seed=st.integers(0, 2**31),
    beam=st.integers(1, 5),
    nbest=st.integers(1, 3),
    alpha=st.floats(0, 2),
    precision=st.sampled_from(["float32", "int8"]),
    early_stopping=st.sampled_from(["nbest", "beam"]),
)
def test_hypotheses_and_scores_are_those_of_pytorch(
    seed: int, beam: int, nbest: int, alpha: float, precision: str, early_stopping: str
) -> None:
    torch.manual_seed(seed)
    model = Transformer(SMALL).eval()
    scatter(model)
    config = DecodeConfig(
        beam=beam, nbest=min(nbest, beam), alpha=alpha, early_stopping=early_stopping  # type: ignore[arg-type]
    )  # fmt: skip
    engine, pad_id = make_engine(model, precision=precision), model.config.pad_id
    longest = max(map(len, SOURCES))
    source = torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in SOURCES])
    step, limits = (
        EngineStep(engine, banned_ids=(pad_id, 1)),
        SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.tensor(LENGTHS)),
    )
    with torch.inference_mode():
        expected = search(step, engine.start(source), config, limits)
    light = LightModel(in_numpy(model, precision), "float32")
    hypotheses = light.search(
        SOURCES, config, LightLimits(sos_id=1, eos_id=2, max_lengths=np.array(LENGTHS)), (pad_id, 1)  # type: ignore[arg-type]
    )  # fmt: skip
    for ours, expected_ones in zip(hypotheses, expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in expected_ones]
        assert [one.finished for one in ours] == [one.finished for one in expected_ones]
        np.testing.assert_allclose([one.score for one in ours], [one.score for one in expected_ones], atol=1e-4)


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 9))
def test_the_best_continuations_are_those_of_pytorch(seed: int, beam: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    totals, gains = rng.normal(size=(3, beam)).tolist(), rng.normal(size=(3 * beam, 7)).astype(np.float32)
    best, parents, tokens = LightStep.top_continuations(totals, gains, count)
    expected = top_continuations(totals, torch.from_numpy(gains), count)
    np.testing.assert_allclose(best, expected[0], rtol=1e-6)
    assert (parents, tokens) == expected[1:]


def test_it_searches_until_pytorch_is_imported(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    light, plain = LightModel(in_numpy(model), "float32"), DecodeConfig()
    assert not light.can_search(plain, 1)
    monkeypatch.delitem(sys.modules, "torch")
    assert light.can_search(plain, 1)
    for ruled in (
        DecodeConfig(sample=True), DecodeConfig(beam_groups=2), DecodeConfig(min_length=2), DecodeConfig(min_ratio=0.5),
        DecodeConfig(repetition_penalty=1.2), DecodeConfig(no_repeat_ngram_size=3), DecodeConfig(forced_eos=True),
        DecodeConfig(renormalize_logits=False),
    ):  # fmt: skip
        assert not light.can_search(ruled, 1)
    assert not light.can_search(plain, light_search.LIGHT_BATCH + 1)
    monkeypatch.setattr(light_search, "LIGHT_SECONDS", 0.0)
    assert not light.can_search(plain, 1)


def test_a_model_that_was_not_compared_is_not_read(tmp_path: Path) -> None:
    assert light_search.read_light(tmp_path, SMALL, "0" * 64, "auto") is None
