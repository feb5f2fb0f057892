"""A sentence that joins a batch while it decodes gets the hypotheses and scores that it gets alone."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.data.batch import pad
from allyouneed.decode import Hypothesis, Newcomers, SearchLimits, running_search, search
from allyouneed.fast.engine import AnyEngine, EngineStep
from allyouneed.fast.kv_cache import CachedState
from allyouneed.fast.selection import make_engine
from allyouneed.younger import build_model
from conftest import ALL_OPTIONS

ENGINES = [("float32", False), ("float32", True), ("int8", False), ("int8", True)]
SEARCHES = [DecodeConfig(beam=1), DecodeConfig(beam=4, nbest=2)]


class Sentence:
    """A source, how long its translation may be, when it comes (in steps), and after which of its steps it leaves."""

    def __init__(self, ids: list[int], max_length: int, comes: int) -> None:
        self.source, self.max_length, self.comes = [1, *ids, 2], max_length, comes


SENTENCES = st.lists(
    st.builds(
        Sentence,
        st.lists(st.integers(3, 199), min_size=1, max_size=12),
        st.integers(1, 14),
        st.integers(0, 30),
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


def limits(sentences: Sequence[Sentence]) -> SearchLimits:
    return SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.tensor([one.max_length for one in sentences]))


def start(engine: AnyEngine, sentences: Sequence[Sentence]) -> CachedState:
    state: CachedState = engine.start(pad([one.source for one in sentences], 0))
    return state


@torch.inference_mode()
def alone(engine: AnyEngine, config: DecodeConfig, sentence: Sentence) -> list[Hypothesis]:
    step = EngineStep(engine, banned_ids=(0, 1))
    (hypotheses,) = search(step, start(engine, [sentence]), config, limits([sentence]))
    return hypotheses


@torch.inference_mode()
def joined(engine: AnyEngine, config: DecodeConfig, sentences: Sequence[Sentence]) -> list[list[Hypothesis]]:
    """The hypotheses of all, in the order in which they come; whoever has not come when nobody is left comes then."""
    waiting = sorted(sentences, key=lambda one: one.comes)
    steps = 0

    def take(active: int) -> list[Sentence]:
        now = max(steps, waiting[0].comes if waiting and not active else 0)
        some = [one for one in waiting if one.comes <= now]
        del waiting[: len(some)]
        return some

    def admit(active: int) -> Newcomers[CachedState] | None:
        nonlocal steps
        steps += 1
        if not (some := take(active)):
            return None
        return Newcomers(limits(some), lambda state, rows: state.insert(start(engine, some), rows))

    first = take(0)
    step = EngineStep(engine, banned_ids=(0, 1))
    finished = dict(chain.from_iterable(running_search(step, start(engine, first), config, limits(first), admit)))
    return [finished[number] for number in range(len(sentences))]


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "compiled"), ENGINES)
@pytest.mark.parametrize("config", SEARCHES, ids=["greedy", "beam"])
@given(sentences=SENTENCES, adjusted=st.booleans())
@settings(deadline=None, max_examples=16)
def test_a_sentence_that_joins_a_batch_gets_what_it_gets_alone(
    precision: str, compiled: bool, config: DecodeConfig, sentences: list[Sentence], adjusted: bool
) -> None:
    """In int8 to the bit; in float32 but for the rounding of scores."""
    some = engine(precision, compiled, adjusted=adjusted)
    in_order = sorted(sentences, key=lambda one: one.comes)
    expected = [alone(some, config, one) for one in in_order]
    results = joined(some, config, sentences)
    if precision == "int8":
        assert results == expected
    for hypotheses, those_alone in zip(results, expected, strict=True):
        assert [one.ids for one in hypotheses] == [one.ids for one in those_alone]
        assert [one.score for one in hypotheses] == pytest.approx([one.score for one in those_alone], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "compiled"), ENGINES)
@pytest.mark.parametrize("config", SEARCHES, ids=["greedy", "beam"])
def test_rows_that_were_free_when_the_cache_grew_hold_nothing_that_spreads(
    precision: str, compiled: bool, config: DecodeConfig
) -> None:
    """Many come and go at random, so that rows are free at times, and are taken again."""
    rng = random.Random(1)
    sentences = [Sentence([5], 25, 0)]
    while len(sentences) < 150:
        source = [rng.randrange(3, 200) for _ in range(rng.randint(1, 9))]
        sentences.append(Sentence(source, 25, sentences[-1].comes + rng.choice((0, 0, 0, 1, 2, 9))))
    some = engine(precision, compiled)
    assert all(joined(some, config, sentences))


@torch.inference_mode()
@pytest.mark.parametrize(("precision", "compiled"), [("float32", False), ("int8", True)])
@pytest.mark.parametrize("config", SEARCHES, ids=["greedy", "beam"])
def test_a_batch_that_others_join_without_end_does_not_grow(
    config: DecodeConfig, precision: str, compiled: bool
) -> None:
    """300 sentences of 8 tokens, one every other step, and a first one with a long source."""
    some = engine(precision, compiled)
    step, sizes = EngineStep(some, banned_ids=(0, 1, 2)), list[tuple[int, int, int]]()
    first, waiting, steps = [Sentence([5] * 40, 8, 0)], [Sentence([5], 8, 0)] * 300, 0

    def measured(last: torch.Tensor, state: CachedState) -> tuple[torch.Tensor, CachedState]:
        sizes.append((len(state.caches[0].tokens), state.source_length, state.caches[0].tokens.size(1)))
        return step(last, state)

    def admit(active: int) -> Newcomers[CachedState] | None:
        nonlocal steps
        steps += 1
        if steps % 2 or not waiting:
            return None
        one = [waiting.pop()]
        return Newcomers(limits(one), lambda state, rows: state.insert(start(some, one), rows))

    finished = dict(chain.from_iterable(running_search(measured, start(some, first), config, limits(first), admit)))
    assert len(finished) == 301
    rows, source_length, capacity = map(max, zip(*sizes[-200:], strict=True))
    assert rows <= 8
    assert source_length == 3
    assert capacity <= 4 * 8 * config.beam + 64
