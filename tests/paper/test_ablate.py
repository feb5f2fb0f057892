from importlib import import_module
from pathlib import Path

import pytest

from allyouneed.apps.paper.ablate import AblationResult, ablate, ablation_figure, scale_recipe
from allyouneed.apps.paper.table import ROWS
from allyouneed.config import Recipe
from allyouneed.errors import ConfigError
from allyouneed.recipes import recipe_path
from allyouneed.train import learning_rate_at

BY_NAME = {row.name: row for row in ROWS}
SMALL = [
    "data.max_train_samples=100", "data.max_valid_samples=10", "model.d_model=16", "model.d_ff=16",
    "model.encoder_layers=1",
    "model.decoder_layers=1", "train.steps=3", "train.batch_tokens=200", "train.tensorboard=false",
]  # fmt: skip


@pytest.fixture
def dates() -> Recipe:
    return Recipe.read(recipe_path("dates"))


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("base", "d_model", 64), ("A1", "heads", 1), ("A32", "heads", 16), ("B16", "d_k", 4), ("C-d256", "d_model", 32),
        ("C-d1024", "d_model", 128), ("C-ff4096", "d_ff", 512), ("C-N2", "encoder_layers", 1),
        ("E", "positions", "learned"),
        ("D-drop2", "dropout", 0.2), ("D-drop0", "dropout", 0.0), ("big", "d_model", 128), ("big", "heads", 8),
    ],
)  # fmt: skip
def test_a_row_changes_the_base_by_the_same_factor(dates: Recipe, name: str, field: str, value: object) -> None:
    assert getattr(scale_recipe(dates, BY_NAME[name], steps=10).model, field) == value


def test_label_smoothing_is_a_row_s_own(dates: Recipe) -> None:
    assert scale_recipe(dates, BY_NAME["D-ls2"], steps=10).train.label_smoothing == 0.2
    assert scale_recipe(dates, BY_NAME["A1"], steps=10).train.label_smoothing == dates.train.label_smoothing


@pytest.mark.parametrize("schedule", ["paper", "cosine"])
def test_a_short_run_warms_up_faster_to_the_same_rate(schedule: str) -> None:
    recipe = Recipe.read(recipe_path("dates"), [f"train.schedule={schedule}", "train.cooldown=0"])
    short = scale_recipe(recipe, BY_NAME["base"], steps=50).train
    assert short.warmup == 10
    highest = [learning_rate_at(train.warmup, train, d_model=64) for train in (recipe.train, short)]
    assert highest[0] == pytest.approx(highest[1])


@pytest.mark.parametrize(("schedule", "factor"), [("paper", 2**-0.5), ("cosine", 1.0)])
def test_equation_3_gives_a_wider_row_a_lower_peak(schedule: str, factor: float) -> None:
    recipe = Recipe.read(recipe_path("dates"), [f"train.schedule={schedule}", "train.cooldown=0"])
    wide = scale_recipe(recipe, BY_NAME["C-d1024"], steps=1_000)
    assert wide.train.learning_rate == pytest.approx(recipe.train.learning_rate * factor)


def test_every_row_can_be_scaled(dates: Recipe) -> None:
    assert {scale_recipe(dates, row, steps=10).train.steps for row in ROWS} == {10}


def test_rows_are_trained_and_measured(tmp_path: Path) -> None:
    recipe = Recipe.read(recipe_path("dates"), SMALL)
    rows = [BY_NAME["base"], BY_NAME["A1"]]
    results = list(ablate(recipe, tmp_path / "out", minutes=0.05, rows=rows, trial=1))
    assert [result.row.name for result in results] == ["base", "A1"]
    for result in results:
        assert 1 < result.perplexity < 200
        assert result.bleu >= 0
        assert result.recipe.train.steps == 3
        assert (tmp_path / "out" / result.row.name / "weights.safetensors").is_file()
    assert len(list((tmp_path / "out/data").iterdir())) == 1  # read and encoded once for all


def test_a_short_time_makes_short_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("allyouneed.apps.paper.ablate"), "_seconds_per_update", lambda *_: 0.5)
    recipe = Recipe.read(recipe_path("dates"), [*SMALL, "train.steps=1000"])
    (result,) = ablate(recipe, tmp_path, minutes=2 / 60, rows=[BY_NAME["base"]])
    assert result.recipe.train.steps == 4  # two seconds


def test_without_validation_pairs_nothing_can_be_compared(tmp_path: Path) -> None:
    recipe = Recipe.read(recipe_path("dates"), [*SMALL, "data.valid=[]", "data.held_out=0"])
    with pytest.raises(ConfigError, match="data.valid, or set data.held_out"):
        next(ablate(recipe, tmp_path, minutes=1, rows=[BY_NAME["base"]], trial=1))


def test_the_picture_shows_each_row_against_the_first(dates: Recipe) -> None:
    results = [
        AblationResult(BY_NAME[name], dates, 1, 10.0 + i, 20.0 - i, 1.0) for i, name in enumerate(["base", "A1"])
    ]
    left, right = ablation_figure(results).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["base", "A1"]
    printed, ours = (line.get_xdata() for line in left.lines[1:])
    assert printed == pytest.approx([0, 100 * (5.29 / 4.92 - 1)])
    assert ours == pytest.approx([0, 10])
    assert right.lines[2].get_xdata() == pytest.approx([0, -1])
