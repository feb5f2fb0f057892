"""Several models as one: the mean of their probabilities, in every search."""

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from allyouneed.config import ModelConfig
from allyouneed.decode import BeamOptions, SearchLimits, beam_search, greedy_search, mean_probability
from allyouneed.decode.beam import Best, top_continuations
from allyouneed.fast.engine import EngineStep
from allyouneed.fast.ensemble import EnsembleEngine
from allyouneed.fast.selection import make_engine, make_ensemble, pick_precision
from allyouneed.nn import Transformer
from allyouneed.younger import build_model
from conftest import ALL_OPTIONS, SMALL
from tables import Prefixes, Table, limits
from twins import scatter

SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"d_model": 16, "heads": 2, "d_ff": 24, "encoder_layers": 1, "norm": "pre", "max_length": 11},
    ALL_OPTIONS,
)
ENGINES: list[dict[str, Any]] = [{}, {"precision": "int8"}, {"compiled": True}, {"precision": "int8", "compiled": True}]


@dataclass
class TableEngine:
    """A table of log-probabilities as an engine; its sources are nothing but rows."""

    table: Table
    config: ModelConfig = SMALL
    precision: Any = "float32"
    compiled: bool = False

    def start(self, source: Tensor) -> Prefixes:
        return self.table.start(len(source))

    def step(self, last: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        return self.table(last, state)

    def log_probabilities(self, last: Tensor, state: Prefixes, banned_ids: Tensor) -> tuple[Tensor, Prefixes]:
        return self.table(last, state)

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        return top_continuations(totals, log_probabilities, count)


def models() -> list[Transformer]:
    """Models of other sizes and options, and one vocabulary."""
    torch.manual_seed(1)
    made = [build_model(replace(SMALL, **sizes)).eval() for sizes in SHAPES]
    for model in made:
        scatter(model)
    return made


def test_the_mean_of_probabilities_by_hand() -> None:
    one, another = torch.tensor([0.6, 0.4, 0.0]).log(), torch.tensor([0.1, 0.9, 0.0]).log()
    assert mean_probability([one, another]).exp().tolist() == pytest.approx([0.35, 0.65, 0.0])
    assert torch.equal(mean_probability([one]), one)


@pytest.mark.parametrize("seed", range(5))
def test_a_search_finds_the_sentence_that_the_mean_makes_most_likely(seed: int) -> None:
    """Of all sentences of two tables, with a beam as wide as there are sentences; and greedy search takes each best."""
    tables = [Table(5, seed=2 * seed + number) for number in range(2)]
    engine = EnsembleEngine([TableEngine(table) for table in tables])

    def log_probability(ids: tuple[int, ...]) -> float:
        prefixes = [(ids[:i], token) for i, token in enumerate(ids)]
        return sum(
            math.log(sum(math.exp(table.after(0, prefix)[token]) for table in tables) / 2) for prefix, token in prefixes
        )

    step, state = EngineStep(engine), engine.start(torch.zeros(1, 1))
    every = tables[0].every_sentence(4)
    best = max(every, key=log_probability)
    ((result,),) = beam_search(step, state, limits(4), BeamOptions(beam=64, alpha=0.0))
    assert (*result.ids, 1) == best
    assert result.log_probability == pytest.approx(log_probability(best), abs=1e-5)
    (greedy,) = greedy_search(step, state, limits(4))
    for i, token in enumerate(greedy.ids):
        continued = [log_probability((*greedy.ids[:i], other)) for other in range(1, 5)]
        assert token == 1 + continued.index(max(continued))


@pytest.mark.parametrize("settings", ENGINES, ids=str)
@torch.inference_mode()
def test_each_step_has_the_mean_of_what_the_members_have_alone(settings: dict[str, Any], source: Tensor) -> None:
    """With hypotheses that are forked, dropped and reordered, and sentences that leave."""
    members = [make_engine(model, **settings) for model in models()]
    ensemble = make_ensemble(models(), **settings)
    banned, last = torch.tensor([0, 1]), torch.tensor([1, 1])
    states, state = [engine.start(source) for engine in members], ensemble.start(source)
    moves = [torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, 2, 2]), torch.tensor([0, 1, 3, 2])]
    for number, move in enumerate(moves):
        alone = [engine.log_probabilities(last, one, banned) for engine, one in zip(members, states, strict=True)]
        together, state = ensemble.log_probabilities(last, state, banned)
        expected = torch.stack([rows.double().exp() for rows, _ in alone]).mean(0).log()
        torch.testing.assert_close(together.double(), expected, atol=1e-5, rtol=0)
        states, state = [one.reorder(move) for _, one in alone], state.reorder(move)
        last = together[move].argmax(-1)
        if number == 1:
            only = torch.tensor([1])
            states, state, last = [one.keep(only) for one in states], state.keep(only), last[2:]
            break
    logits, _ = ensemble.step(last, state)
    assert logits.softmax(-1).sum(-1).tolist() == pytest.approx([1.0, 1.0])
    assert ensemble.precision == members[0].precision
    assert ensemble.compiled == members[0].compiled


@pytest.mark.parametrize("settings", ENGINES[::2], ids=str)
@torch.inference_mode()
def test_a_model_twice_searches_as_the_model_alone(settings: dict[str, Any], source: Tensor) -> None:
    model = models()[0]
    bounds = SearchLimits(sos_id=1, eos_id=2, max_lengths=torch.tensor([9, 9]))
    results = []
    for engine in (make_ensemble([model], **settings), make_ensemble([model, model], **settings)):
        step = EngineStep(engine, banned_ids=(0, 1))
        results.append(beam_search(step, engine.start(source), bounds, BeamOptions(beam=3, nbest=3, alpha=0.6)))
    for alone, together in zip(*results, strict=True):
        assert [one.ids for one in together] == [one.ids for one in alone]
        assert [one.score for one in together] == pytest.approx([one.score for one in alone], abs=1e-4)


def test_its_config_has_the_smallest_length_and_one_model_has_its_own_engine() -> None:
    assert make_ensemble(models()).config == replace(SMALL, max_length=11)
    assert not isinstance(make_ensemble(models()[:1]), EnsembleEngine)


def test_the_automatic_precision_suits_all_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.fast.selection.supports_int8", lambda device: True)
    small, large = Transformer(SMALL), build_model(replace(SMALL, vocab_size=100_000))
    assert pick_precision(large, large) == "int8"
    assert pick_precision(large, small) == "float32"
