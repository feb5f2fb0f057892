"""Every `Step`, held to `Transformer.forward` and to a table, through hypotheses that fork, drop and end."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from allyouneed.config import ModelConfig
from allyouneed.decode import BeamOptions, Restriction, SearchLimits, beam_search, greedy_search
from allyouneed.errors import ConfigError
from allyouneed.nn import Transformer
from allyouneed.translator import static_step
from allyouneed.translator.array_step import ArrayStep
from allyouneed.translator.definition import DefinitionEngine, top_continuations
from allyouneed.translator.engine import EngineStep, Precision, make_engine
from allyouneed.translator.ensemble import EnsembleEngine
from allyouneed.translator.static_step import StaticEngine, find_difference
from allyouneed.younger import build_model
from conftest import ADJUSTED, SMALL
from tables import SOS, Table, TableStep, limits
from twins import scatter

SOURCES = [[1, 5, 6, 7, 2], [1, 3, 2], [1, 9, 9, 8, 4, 2], [1, 11, 2]]
OPTIONS: list[dict[str, Any]] = [{}, {"norm": "pre"}, {"positions": "learned"}, *ADJUSTED]


def make_model(**sizes: Any) -> Transformer:
    model = build_model(replace(SMALL, **sizes)).eval()
    scatter(model)
    return model


def walk(step: EngineStep, expected: Callable[[int, list[int]], Sequence[float]], seed: int) -> None:
    """Write random hypotheses, as many of each sentence as it happens, and compare what may come next."""
    rng = Random(seed)
    written: list[tuple[int, list[int]]] = [(sentence, []) for sentence in range(len(SOURCES))]
    chosen = list(range(len(written)))
    for length in range(7):
        tokens = [rng.randrange(3, 12) if length else SOS for _ in chosen]
        step(chosen, tokens)
        written = [(written[n][0], [*written[n][1], token]) for n, token in zip(chosen, tokens, strict=True)]
        rows = np.asarray(step.log_probabilities())
        for row, (sentence, ids) in zip(rows, written, strict=True):
            np.testing.assert_allclose(row, expected(sentence, ids), atol=1e-4)
        chosen = sorted(rng.choices(range(len(written)), k=rng.randrange(1, 9)), key=lambda n: written[n][0])


@torch.inference_mode()
def by_forward(model: Transformer, sentence: int, ids: list[int], banned: Sequence[int] = ()) -> Sequence[float]:
    logits = model(torch.tensor([SOURCES[sentence]]), torch.tensor([ids]))[0, -1]
    logits[list(banned)] = -torch.inf
    row: list[float] = logits.log_softmax(-1).tolist()
    return row


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_each_step_has_the_log_probabilities_of_forward(options: dict[str, Any], seed: int) -> None:
    model = make_model(**options)
    walk(DefinitionEngine(model).start(SOURCES), lambda *prefix: by_forward(model, *prefix), seed)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_static_step_has_them_too(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_step, "LEAST_PLACES", 2)  # so that places run out
    model = make_model(**options)
    engine = StaticEngine(model)
    for seed in range(2):
        walk(engine.start(SOURCES), lambda *prefix: by_forward(model, *prefix), seed)
    assert find_difference(engine) == ""


def test_a_search_takes_the_static_decoders_of_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, made = make_model(), []

    class Noted(static_step.StaticDecoder):
        def __init__(self, *args: Any) -> None:
            made.append(args)
            super().__init__(*args)

    monkeypatch.setattr(static_step, "StaticDecoder", Noted)
    engine = StaticEngine(model)
    walk(engine.start(SOURCES), lambda *prefix: by_forward(model, *prefix), 1)
    shapes = len(made)
    walk(engine.start(SOURCES), lambda *prefix: by_forward(model, *prefix), 1)
    assert len(made) == shapes > 1


def test_static_steps_of_an_edited_model_are_seen() -> None:
    model = TableModel(Table(12, 0), len(SOURCES)).eval()
    assert find_difference(StaticEngine(model))


@pytest.mark.parametrize("seed", range(3))
def test_an_ensemble_has_the_mean_probability(seed: int) -> None:
    models = [make_model(), make_model(d_model=16, heads=2, norm="pre", max_length=11), make_model(**ADJUSTED[2])]

    def mean(sentence: int, ids: list[int]) -> list[float]:
        rows = [by_forward(model, sentence, ids, [0, 1]) for model in models]
        with np.errstate(divide="ignore"):
            row: list[float] = np.log(np.exp(rows).mean(0)).tolist()
        return row

    engine = EnsembleEngine([DefinitionEngine(model) for model in models])
    assert engine.config == replace(SMALL, max_length=11)
    walk(engine.start(SOURCES, banned_ids=[0, 1]), mean, seed)


def test_banned_ids_have_no_chance_and_others_share_theirs_or_not() -> None:
    model = make_model()
    plain = by_forward(model, 0, [1])
    for renormalize, total in ((True, 1.0), (False, 1 - math.exp(plain[0]) - math.exp(plain[1]))):
        step = DefinitionEngine(model).start(SOURCES[:1], banned_ids=[0, 1], renormalize=renormalize)
        step([0], [1])
        row = step.log_probabilities()[0]
        assert row[:2].isneginf().all()
        assert float(row.exp().sum()) == pytest.approx(total, abs=1e-5)


class TableArrayStep(ArrayStep):
    """A table as an array."""

    def __init__(self, step: TableStep, sentences: int) -> None:
        super().__init__(sentences)
        self._step = step

    def compute(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> Any:
        self._step(hypotheses, tokens)
        return np.array(self._step.rows, np.float32)


class TableModel(Transformer):
    """A transformer that has the log-probabilities of a table, of as many words."""

    def __init__(self, table: Table, sentences: int) -> None:
        super().__init__(
            ModelConfig(vocab_size=table.vocabulary, d_model=2, d_ff=1, heads=1, encoder_layers=1, decoder_layers=1)
        )
        self.table_step = table.start(*range(sentences))

    def decode(self, target: torch.Tensor, memory: Any, cache: Any = None) -> torch.Tensor:
        """Decode without a cache, which the table lacks: only the first step is right."""
        self.table_step(range(len(target)), target[:, 0].tolist())
        return torch.tensor(self.table_step.rows)[:, None]


@pytest.mark.parametrize("kind", ["array", "definition"])
@given(st.integers(0, 10_000), st.integers(2, 400), st.integers(1, 20), st.data())
@settings(deadline=None, max_examples=60)
def test_restrictions_and_the_best_are_those_of_the_table(
    kind: str, seed: int, vocabulary: int, count: int, data: st.DataObject
) -> None:
    table, sentences = Table(vocabulary, seed), 3
    right = table.start(*range(sentences))
    right(range(sentences), [SOS] * sentences)
    if kind == "array":
        step: Any = TableArrayStep(table.start(*range(sentences)), sentences)
    else:
        step = DefinitionEngine(TableModel(table, sentences).eval()).start([[1]] * sentences)
    step(range(sentences), [SOS] * sentences)
    ids = st.integers(0, vocabulary - 1)
    for _ in range(data.draw(st.integers(0, 4))):
        told = Restriction(
            banned=data.draw(st.sets(ids, max_size=3)),
            forced=data.draw(st.none() | ids),
            penalized=data.draw(st.sets(ids, max_size=3)),
            penalty=data.draw(st.sampled_from([0.5, 1.0, 2.0])),
        )
        n = data.draw(st.integers(0, sentences - 1))
        right.restrict(n, told)
        step.restrict(n, told)
    totals = [data.draw(st.sampled_from([-math.inf, -2.0, 0.0])) for _ in range(sentences)]
    for found, expected in zip(step.best(totals, count), right.best(totals, count), strict=True):
        assert [one.total for one in found] == pytest.approx([one.total for one in expected], abs=1e-5)
        for one in found:
            exact = right.log_probability(one.hypothesis, one.token)
            assert one.total == pytest.approx(totals[one.hypothesis] + exact, abs=1e-5)
            assert step.log_probability(one.hypothesis, one.token) == pytest.approx(exact, abs=1e-5)
        assert len({one.token for one in found}) == len(found)


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 4), st.integers(1, 700), st.integers(1, 9))
@settings(deadline=None, max_examples=80)
def test_the_best_continuations_are_those_of_all(seed: int, rows: int, beam: int, length: int, count: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    gains = torch.randn(rows, beam, length, generator=rng)
    gains[:, :, ::3] = -torch.inf
    totals = torch.randn(rows, beam, generator=rng, dtype=torch.float64)
    every = (totals[:, :, None] + gains).flatten(1)
    count = min(count, every.size(1))
    found = top_continuations(totals, gains, count)
    best = torch.tensor(found[0], dtype=torch.float64)
    places = torch.tensor(found[1]) * length + torch.tensor(found[2])
    assert best.tolist() == every.topk(count).values.tolist()
    finite = best.isfinite()
    order = sorted(range(count), key=lambda i: (-best[0, i], places[0, i]))
    assert order == list(range(count))
    assert every.gather(1, places)[finite].tolist() == best[finite].tolist()


def test_a_search_over_a_model_claims_what_one_pass_gives() -> None:
    model = make_model()
    bounds = SearchLimits(sos_id=1, eos_id=2, max_lengths=[6, 9, 3, 6])
    engine = DefinitionEngine(model)
    found = beam_search(engine.start(SOURCES), bounds, BeamOptions(beam=4, alpha=0.6))
    for sentence, (best,) in enumerate(found):
        ids = [1, *best.ids, 2][: best.tokens + 1]
        rows = [by_forward(model, sentence, ids[:end])[ids[end]] for end in range(1, len(ids))]
        assert best.log_probability == pytest.approx(sum(rows), abs=1e-4)
    greedy = greedy_search(engine.start(SOURCES), bounds)
    narrow = beam_search(engine.start(SOURCES), bounds, BeamOptions(beam=1, alpha=0.6))
    assert [one.ids for one in greedy] == [best.ids for (best,) in narrow]


@pytest.mark.parametrize("seed", range(5))
def test_an_ensemble_search_finds_the_sentence_that_the_mean_makes_most_likely(seed: int) -> None:
    """Of all sentences of two tables, with a beam as wide as there are sentences."""
    tables = [Table(5, seed=2 * seed + number) for number in range(2)]

    class TableEngine:
        def __init__(self, table: Table) -> None:
            self.table, self.config, self.workers = table, SMALL, 1
            self.precision: Precision = "float32"

        def start(self, sources: Any, **_: Any) -> Any:
            return TableArrayStep(self.table.start(*range(len(sources))), len(sources))

    def log_probability(ids: tuple[int, ...]) -> float:
        prefixes = [(ids[:i], token) for i, token in enumerate(ids)]
        return sum(
            math.log(sum(math.exp(table.after(0, prefix)[token]) for table in tables) / 2) for prefix, token in prefixes
        )

    members: list[Any] = [TableEngine(table) for table in tables]
    engine = EnsembleEngine(members)
    best = max(tables[0].every_sentence(4), key=log_probability)
    ((result,),) = beam_search(engine.start([[1]]), limits(4), BeamOptions(beam=64, alpha=0.0))
    assert (*result.ids, 1) == best
    assert result.log_probability == pytest.approx(log_probability(best), abs=1e-5)


def test_bfloat16_is_for_a_gpu_and_unknown_precisions_are_refused() -> None:
    with pytest.raises(ConfigError, match="bfloat16.*GPU"):
        make_engine([make_model()], "bfloat16")
    with pytest.raises(ConfigError, match="int4"):
        make_engine([make_model()], "int4")
    assert DefinitionEngine(make_model()).precision == "float32"
