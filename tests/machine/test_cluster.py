"""Work on a Ray cluster of two processes, of which one is killed: the files are those of one process."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from allyouneed import Translator
from allyouneed.errors import ConfigError, MissingExtraError
from allyouneed.machine.cluster import cluster_map, connected
from shell import run_here
from waiting import PATIENCE

pytestmark = pytest.mark.slow

JOBS = Path(__file__).parents[1] / "ray_jobs.py"


def test_two_processes_of_which_one_is_killed_write_the_files_of_one(saved: Path, tmp_path: Path) -> None:
    pairs = [f"a {i} dog runs\tein {i} Hund rennt" for i in range(600)]
    pairs[7], pairs[33], pairs[100] = "no pair", "\tempty", "e\u0301\x07 x\ty"
    pairs[500:520] = pairs[200:220]
    (tmp_path / "pairs.tsv").write_text("".join(f"{pair}\n" for pair in pairs))
    (tmp_path / "run.toml").write_text('[data]\ntrain = "pairs.tsv"\nheld_out = 0.1\nvocab_size = 300\n')
    lines = ["abc", "", "cba", "bb"] * 200
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    words = ["run.toml", "cluster", str(saved), "in.txt", "out.txt"]
    result = subprocess.run(
        [sys.executable, str(JOBS), *words], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=PATIENCE,
        env={**os.environ, "HOME": str(tmp_path), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert len(list(tmp_path.glob("killed-*"))) == 3
    assert result.stdout.startswith("train: 599 read")
    assert "raylet" not in result.stdout
    assert "raylet" in result.stderr

    assert run_here("prepare", "run.toml", "--output", "one", cwd=tmp_path).returncode == 0
    files = {path.name: path.read_bytes() for path in (tmp_path / "one/data").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "cluster/data").iterdir()} == files
    assert len(files) == 9
    expected = [translation.text for translation in Translator.load(saved, device="cpu").translations(lines)]
    assert (tmp_path / "out.txt").read_text().splitlines() == expected


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingExtraError, match="--ray .*extra ray"),
        cluster_map(lambda: str, "local"),
    ):
        pass


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nothing_listens_is_refused_at_once_in_one_line(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{scheme}127.0.0.1:{server.getsockname()[1]}"
    with (
        pytest.raises(ConfigError, match=rf"--ray {re.escape(address)}\b.*refused"),
        connected(address),
    ):
        pass
