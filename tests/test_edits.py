"""What is read is what runs: an edit of any file of Figure 1 trains, translates by every engine, and serves."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import allyouneed
import edited_package

HOUSE = Path(allyouneed.__file__).parent

EDITS = {
    "attention": ("scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))", "scores = query @ key.mT"),
    "decoder": ("self.cross_attention_residual(x, attend_to_memory)", "self.cross_attention_residual(x, lambda y: y)"),
    "dropout": (".mul_(1 / (1 - p))", ""),
    "embedding": (" * math.sqrt(self.d_model)", ""),
    "encoder": ("self.attention(y, y, y, attn_mask)", "y"),
    "feedforward": ("return self.outer(", "return -self.outer("),
    "mask": (".tril(past)", ".tril(past - 1)"),
    "normalization": ("F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)", "x * self.gain + self.bias"),
    "position": ("self.dropout(x + _cut(", "self.dropout(x - _cut("),
    "projection": ("return F.linear(x,", "return -F.linear(x,"),
    "residual": ("self.norm(x + self.dropout(sublayer(x)))", "self.norm(self.dropout(sublayer(x)))"),
    "transformer": (
        "Memory(self.encoder(x, attn_mask), attn_mask)",
        "Memory(x + self.encoder(x, attn_mask), attn_mask)",
    ),
}
NEEDS_NO_OTHER_ENGINE = {"", "dropout"}  # there is none in eval mode


def copy_package(folder: Path, edited: str) -> None:
    """Copy the package with an edited file of nn/; all the rest are links, so that kernels are not compiled anew."""
    package = folder / "allyouneed"
    package.mkdir(parents=True)
    for part in HOUSE.iterdir():
        if part.name == "nn":
            shutil.copytree(part, package / "nn", ignore=shutil.ignore_patterns("__pycache__"))
        elif part.name != "__pycache__":
            (package / part.name).symlink_to(part)
    if edited:
        file, (before, after) = package / "nn" / f"{edited}.py", EDITS[edited]
        text = file.read_text(encoding="utf-8")
        assert before in text
        file.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folders = {edited: tmp_path_factory.mktemp(edited or "unedited") for edited in ("", *EDITS)}
    for edited, folder in folders.items():
        copy_package(folder, edited)
        if edited in edited_package.SERVED:
            (folder / "served").touch()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, edited_package.__file__, *folders.values()], check=True, env=environment)
    return {edited: json.loads((folder / "report.json").read_text()) for edited, folder in folders.items()}


def test_there_are_twelve_files_of_figure_1() -> None:
    files = {file.stem for file in (HOUSE / "nn").glob("*.py")}
    assert files - {"__init__", "module", "weights"} == EDITS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("edited", EDITS)
def test_an_edit_is_trained(edited: str, reports: dict[str, Any]) -> None:
    assert not math.isclose(reports[edited]["weights"], reports[""]["weights"], rel_tol=1e-6)


@pytest.mark.parametrize("way", edited_package.WAYS)
@pytest.mark.parametrize("edited", ["", *EDITS])
def test_every_engine_translates_as_the_edited_forward_does(edited: str, way: str, reports: dict[str, Any]) -> None:
    report = reports[edited]
    exact = way.startswith("float32") or edited not in NEEDS_NO_OTHER_ENGINE
    assert report[way]["search"] == pytest.approx(report[way]["forward"], abs=1e-4 if exact else 0.3)


@pytest.mark.parametrize("edited", edited_package.SERVED)
def test_a_server_translates_as_the_edited_forward_does(edited: str, reports: dict[str, Any]) -> None:
    for answer, expected in zip(reports[edited]["served"], reports[edited]["translations"], strict=True):
        assert answer["text"] == expected["text"]
        assert answer["log_probability"] == pytest.approx(expected["log_probability"], abs=1e-4)


@pytest.mark.parametrize("edited", ["", *EDITS])
def test_one_line_says_so(edited: str, reports: dict[str, Any]) -> None:
    assert len(reports[edited]["warnings"]) == (edited not in NEEDS_NO_OTHER_ENGINE)
