import re
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest
import torch

from allyouneed import fit
from allyouneed.auto import Draft, complete
from allyouneed.config import ModelConfig, Recipe, TrainConfig
from allyouneed.data.batch import Batch
from allyouneed.evaluation import evaluate_greedily
from allyouneed.nn import Transformer
from allyouneed.run import Hooks, preview_training
from allyouneed.run.estimate import format_duration, seconds_per_update
from allyouneed.train import make_optimizer
from runs import TINY, Notebook

BATCH = Batch(torch.tensor([[1, 5, 6, 2]]), torch.tensor([[1, 6, 5, 2]]))


def preview(draft: Draft, output: Path, watch: Notebook) -> Recipe:
    hooks = Hooks(callback=watch, evaluate=evaluate_greedily)
    recipe, notes = complete(draft, output, hooks)
    preview_training(recipe, output, hooks, notes=notes)
    return recipe


def test_measuring_changes_nothing(config: ModelConfig) -> None:
    model = Transformer(config)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    state = torch.get_rng_state()
    assert 0 < seconds_per_update(model, repeat(BATCH), TrainConfig(accumulate_steps=2), make_optimizer) < 5
    assert torch.equal(torch.get_rng_state(), state)
    for now, then in zip(model.parameters(), before, strict=True):
        assert torch.equal(now, then)
        assert now.grad is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "a second"),
        (20, "20 seconds"),
        (600, "10 minutes"),
        (8_000, "2.2 hours"),
        (200_000, "2.3 days"),
    ],
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


@pytest.mark.parametrize("minutes", [0, 0.8])
def test_a_preview_tells_the_plan_and_leaves_only_prepared_pairs_and_the_speed(tmp_path: Path, minutes: float) -> None:
    draft = Draft({"data": TINY.tables()["data"], "train": {"minutes": minutes, "steps": 20_000, "tensorboard": False}})
    watch = Notebook()
    recipe = preview(draft, tmp_path / "run", watch)
    assert recipe.train.steps == 20_000
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"data", *(["speed.json"] if minutes else [])}
    assert watch.lines[-1].startswith(f"data: {tmp_path / 'run/data'} ")
    lines = [line for line in watch.lines if line.startswith(("plan: ", "budget: "))]
    if minutes:
        assert re.match(r"plan: about [\d,]+ updates of \S+ seconds, .* epochs; ", lines[0])
        assert re.match(r"plan: of 0.8 minutes, .* updates, ", lines[1])
    else:
        first, second = (int(line.split()[2]) for line in lines[:2])
        assert lines[0].startswith(f"budget: --minutes {first} would suit ")
        assert lines[1].startswith(f"budget: --minutes {2 * first} would buy ")
        assert second == 2 * first
        assert lines[2].startswith("plan: 20,000 updates, ")
    train = replace(recipe.train, steps=1, warmup=1, cooldown=0, early_stopping_metric="loss")
    fit(replace(recipe, train=train), tmp_path / "run", evaluate=None)


@pytest.mark.parametrize(("seconds", "budgets"), [(0.5, []), (0.75, ["2", "4"])])  # of an update
def test_a_budget_is_proposed_with_the_epochs_that_it_buys_and_none_of_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, budgets: list[str]
) -> None:
    monkeypatch.setattr("allyouneed.run.estimate._measure", lambda *_: seconds)
    draft = Draft({"data": TINY.tables()["data"], "train": {"steps": 100, "batch_tokens": 200, "tensorboard": False}})
    watch = Notebook()
    preview(draft, tmp_path / "run", watch)
    lines = [line for line in watch.lines if line.startswith("budget: ")]
    assert [line.split()[2] for line in lines] == budgets
    if budgets:
        (plan,) = (line for line in watch.lines if line.startswith("plan: "))
        epochs = [float(re.search(r"([\d.]+) epochs", line)[1]) for line in (*lines, plan)]  # type: ignore[index]
        assert epochs[0] > 1.3 * epochs[2]  # 2 minutes, a tenth of which is not for updates, beside 75 seconds
        assert epochs[1] == pytest.approx(2 * epochs[0], rel=0.02)
