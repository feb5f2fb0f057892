"""The callbacks that docs/training.md shows, with stand-ins for the services they report to."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from allyouneed import fit
from allyouneed.config import TrainConfig
from allyouneed.nn import Transformer
from runs import TINY, StopAt, read_weights

PAGE = (Path(__file__).parents[2] / "docs/training.md").read_text(encoding="utf-8")


def defined_on_the_page(name: str) -> Any:
    (block,) = (code for code in re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL) if f"class {name}" in code)
    names: dict[str, Any] = {}
    exec(block.partition("\nfit(")[0], names)
    return names[name]()


def test_the_callback_of_the_docs_logs_every_validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[int, dict[str, float]]] = []

    def log(values: dict[str, float], step: int) -> None:
        logged.append((step, values))

    stand_in = SimpleNamespace(init=lambda **_: SimpleNamespace(log=log))
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    fit(TINY, tmp_path / "run", callback=defined_on_the_page("WandbCallback"), evaluate=None)
    assert [step for step, _ in logged] == [4, 8, 12, 12]
    assert logged[0][1].keys() == {"loss", "valid_loss"}


def test_a_run_with_an_optimizer_of_the_user_is_resumed_exactly(tmp_path: Path) -> None:
    def nadam(model: Transformer, config: TrainConfig) -> torch.optim.Optimizer:
        return torch.optim.NAdam(model.parameters(), betas=(0.9, 0.98), weight_decay=config.weight_decay)

    recipe = replace(TINY, train=replace(TINY.train, average_checkpoints=1))
    fit(recipe, tmp_path / "straight", optimizer=nadam, evaluate=None)
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "run", optimizer=nadam, evaluate=None, callback=StopAt(6))
    fit(recipe, tmp_path / "run", optimizer=nadam, evaluate=None, resume=True)
    assert read_weights(tmp_path / "run") == read_weights(tmp_path / "straight")
    fit(recipe, tmp_path / "adam", evaluate=None)
    assert read_weights(tmp_path / "adam") != read_weights(tmp_path / "straight")
