from pathlib import Path

import pytest

from allyouneed.config import Recipe
from allyouneed.errors import ConfigError
from allyouneed.paper.ablate import ablate, scaled
from allyouneed.paper.table import ROWS
from allyouneed.recipes import recipe_path

BY_NAME = {row.name: row for row in ROWS}
SMALL = [
    "data.limit=100", "data.valid_limit=10", "model.d_model=16", "model.d_ff=16", "model.encoder_layers=1",
    "model.decoder_layers=1", "train.steps=3", "train.batch_tokens=200",
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
    assert getattr(scaled(dates, BY_NAME[name], steps=10).model, field) == value


def test_label_smoothing_is_a_row_s_own(dates: Recipe) -> None:
    assert scaled(dates, BY_NAME["D-ls2"], steps=10).train.label_smoothing == 0.2
    assert scaled(dates, BY_NAME["A1"], steps=10).train.label_smoothing == dates.train.label_smoothing


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_can_be_scaled(dates: Recipe, row: object) -> None:
    assert scaled(dates, row, steps=10).train.steps == 10  # type: ignore[arg-type]


def test_rows_are_trained_and_measured(tmp_path: Path) -> None:
    recipe = Recipe.read(recipe_path("dates"), SMALL)
    rows = [BY_NAME["base"], BY_NAME["A1"]]
    results = list(ablate(recipe, tmp_path / "out", minutes=0.05, rows=rows, trial=1))
    assert [result.row.name for result in results] == ["base", "A1"]
    for result in results:
        assert 1 < result.perplexity < 200
        assert (tmp_path / "out" / result.row.name / "weights.safetensors").is_file()


def test_without_validation_pairs_nothing_can_be_compared(dates: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must have data.valid"):
        next(ablate(Recipe.read(recipe_path("dates"), ["data.valid="]), tmp_path, minutes=1))
