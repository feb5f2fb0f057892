"""COMET by its own program, of which a stand-in with the same options is planted on the PATH."""

import os
import stat
import sys
from pathlib import Path

import pytest

from allyouneed.errors import ConfigError
from allyouneed.evaluation.comet import make_comet
from allyouneed.metrics import count_sentences, score_with_interval

PROGRAM = """#!{python}
import argparse, json, os, sys
parser = argparse.ArgumentParser()
for name in ("-s", "-t", "-r", "--model", "--gpus", "--to_json"):
    parser.add_argument(name, required=True)
parser.add_argument("--quiet", action="store_true")
options = parser.parse_args()
if os.path.getsize(options.model):
    sys.exit("the model is broken")
assert os.environ["HF_HUB_OFFLINE"] == "1"
read = lambda path: [line.strip() for line in open(path, encoding="utf-8").readlines()]
rows = [dict(src=a, mt=b, ref=c, COMET=float(b == c) / 2 + len(a) / 100)
        for a, b, c in zip(read(options.s), read(options.t), read(options.r), strict=True)]
json.dump({{options.t: rows}}, open(options.to_json, "w", encoding="utf-8"))
"""


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin/comet-score"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    file = tmp_path / "wmt22-comet-da/checkpoints/model.ckpt"
    file.parent.mkdir(parents=True)
    file.touch()
    (file.parents[1] / "hparams.yaml").touch()
    return file


def test_the_score_is_the_mean_of_what_the_program_gives_each_sentence(checkpoint: Path) -> None:
    metric = make_comet(checkpoint.parents[1], ["aaaa", "bb\u2028b"])
    counts = count_sentences(metric, ["x", "y z"], [["x", "other"], ["z"]])
    assert counts.rows[:, 0].tolist() == [0.5 + 0.04, 0.04]
    assert counts.score == pytest.approx(29)
    interval = score_with_interval(metric, counts)
    assert (interval.low, interval.high, interval.signature) == (4, 54, "model:wmt22-comet-da")


def test_what_is_missing_or_fails_gets_one_line(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        make_comet(Path("nowhere"), [])
    metric = make_comet(checkpoint, ["a"])
    checkpoint.write_text("broken")
    with pytest.raises(ConfigError, match=r"comet-score .*1\).*broken"):
        count_sentences(metric, ["x"], ["x"])
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="comet-score.*unbabel-comet"):
        make_comet(checkpoint, [])
