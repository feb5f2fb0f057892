"""A sentence gets the hypotheses and scores that it gets alone, whatever leaves its batch before it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.data.batch import pad
from allyouneed.decode import Hypothesis, SearchLimits, search
from allyouneed.fast.engine import AnyEngine, EngineStep
from allyouneed.fast.selection import make_engine
from allyouneed.younger import build_model
from conftest import ALL_OPTIONS

ENGINES = [("float32", False), ("float32", True), ("int8", False), ("int8", True)]
SEARCHES = [DecodeConfig(beam=1), DecodeConfig(beam=4, nbest=2)]


class Sentence(NamedTuple):
    """A source, and how long its translation may be."""

    source: list[int]
    max_length: int


SENTENCES = st.lists(
    st.builds(
        lambda ids, length: Sentence([1, *ids, 2], length),
        st.lists(st.integers(3, 199), min_size=1, max_size=12),
        st.integers(1, 80),
    ),
    min_size=1,
    max_size=14,
)


@pytest.fixture(autouse=True)
def _memory_that_nobody_wrote_to_holds_nan() -> Iterator[None]:
    """PyTorch then fills it so: a weight of 0 does not hide a NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@cache
def engine(precision: str, compiled: bool, *, adjusted: bool = False) -> AnyEngine:
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=200, d_model=32, d_ff=48, heads=4, encoder_layers=2, decoder_layers=2)
    model = build_model(replace(config, **ALL_OPTIONS) if adjusted else config).eval()
    return make_engine(model, precision=precision, compiled=compiled)


@torch.inference_mode()
def search_together(engine: AnyEngine, config: DecodeConfig, sentences: Sequence[Sentence]) -> list[list[Hypothesis]]:
    limits = SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.tensor([one.max_length for one in sentences]))
    state = engine.start(pad([one.source for one in sentences], 0))
    return search(EngineStep(engine, banned_ids=(0, 1)), state, config, limits)


@pytest.mark.parametrize(("precision", "compiled"), ENGINES)
@pytest.mark.parametrize("config", SEARCHES, ids=["greedy", "beam"])
@given(sentences=SENTENCES, adjusted=st.booleans())
@settings(deadline=None, max_examples=8)
def test_a_sentence_of_a_batch_gets_what_it_gets_alone(
    precision: str, compiled: bool, config: DecodeConfig, sentences: list[Sentence], adjusted: bool
) -> None:
    """In int8 to the bit; in float32 but for the rounding of scores."""
    some = engine(precision, compiled, adjusted=adjusted)
    expected = [search_together(some, config, [one])[0] for one in sentences]
    results = search_together(some, config, sentences)
    if precision == "int8":
        assert results == expected
    for hypotheses, those_alone in zip(results, expected, strict=True):
        assert [one.ids for one in hypotheses] == [one.ids for one in those_alone]
        assert [one.score for one in hypotheses] == pytest.approx([one.score for one in those_alone], abs=1e-4)
