from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from allyouneed.apps.paper.table import (
    ROWS,
    VOCABULARY,
    Row,
    count_parameters,
    flops_per_token_pair,
    matching_vocabulary,
)
from allyouneed.config import ModelConfig, Recipe
from allyouneed.nn import Transformer
from allyouneed.recipes import paper_names, recipe_path


def test_every_row_is_a_recipe_and_every_recipe_a_row() -> None:
    assert sorted(row.name for row in ROWS) == paper_names()
    for row in ROWS:
        recipe = Recipe.read(recipe_path(row.name))
        assert (recipe.data.vocab_size, recipe.train.precision) == (VOCABULARY, "auto")


def test_the_rows_have_the_sizes_of_table_3() -> None:
    base = ModelConfig()
    differ: dict[str, dict[str, Any]] = {
        "base": {}, "A1": {"heads": 1}, "A4": {"heads": 4}, "A16": {"heads": 16}, "A32": {"heads": 32},
        "B16": {"d_k": 16}, "B32": {"d_k": 32},
        "C-N2": {"encoder_layers": 2, "decoder_layers": 2}, "C-N4": {"encoder_layers": 4, "decoder_layers": 4},
        "C-N8": {"encoder_layers": 8, "decoder_layers": 8}, "C-d256": {"d_model": 256},
        "C-d1024": {"d_model": 1024},
        "C-ff1024": {"d_ff": 1024}, "C-ff4096": {"d_ff": 4096}, "D-drop0": {"dropout": 0.0},
        "D-drop2": {"dropout": 0.2},
        "D-ls0": {}, "D-ls2": {}, "E": {"positions": "learned"},
        "big": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
    }  # fmt: skip
    for row in ROWS:
        assert row.model == replace(base, **differ[row.name]), row.name
    smoothing = {row.name: Recipe.read(recipe_path(row.name)).train.label_smoothing for row in ROWS}
    assert {name for name, value in smoothing.items() if value != 0.1} == {"D-ls0", "D-ls2"}
    assert (smoothing["D-ls0"], smoothing["D-ls2"]) == (0.0, 0.2)
    big = Recipe.read(recipe_path("big")).train
    assert (big.steps, big.average_checkpoints) == (300_000, 20)


EXACT = dict.fromkeys((row.name for row in ROWS), 63_082_496) | {
    "B16": 55_990_784, "B32": 58_354_688, "C-N2": 33_656_832, "C-N4": 48_369_664, "C-N8": 77_795_328,
    "C-d256": 26_834_944, "C-d1024": 163_889_152, "C-ff1024": 50_487_296, "C-ff4096": 88_272_896,
    "E": 63_606_784, "big": 214_245_376,
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_parameters_are_exactly_these(row: Row) -> None:
    assert count_parameters(row.model) == EXACT[row.name]


@pytest.mark.parametrize("row", [row for row in ROWS if row.millions], ids=lambda row: row.name)
def test_one_vocabulary_explains_the_printed_figures(row: Row) -> None:
    """With 41,000 words every printed figure but big's is ours, to within the million it is rounded to."""
    fits = matching_vocabulary(row)
    assert fits is not None
    apart = count_parameters(row.model, vocabulary=41_000) / 1e6 - (row.millions or 0)
    assert abs(apart) < 1 if row.name != "big" else 5 < apart < 6


def test_flops_are_those_pytorch_counts() -> None:
    config = ModelConfig(vocab_size=97, d_model=24, d_ff=40, heads=2, d_k=6, d_v=10, encoder_layers=2, decoder_layers=3)
    model = Transformer(config).eval()
    source, target = torch.randint(1, 97, (3, 11)), torch.randint(1, 97, (3, 11))
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counted:
        model(source, target)
    expected = 3 * 11 * flops_per_token_pair(config, length=11, vocabulary=97)
    assert counted.get_total_flops() == expected
