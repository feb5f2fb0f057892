"""Work on a Ray cluster: the results of one process, also after one of two was killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allyouneed import Translator
from allyouneed.cluster import cluster_map
from allyouneed.errors import MissingExtraError

JOBS = Path(__file__).with_name("ray_jobs.py")


def test_a_killed_process_is_replaced_and_lines_are_those_of_one_machine(saved: Path, tmp_path: Path) -> None:
    lines = ["abc", "", "cba", "bb"] * 10
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    result = subprocess.run(
        [sys.executable, str(JOBS), str(saved), str(tmp_path / "in.txt"), str(tmp_path / "out.txt")],
        env={**os.environ, "HOME": str(tmp_path), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert str([number * number for number in range(12)]) in result.stdout
    assert (tmp_path / "marker").exists()  # so one process was killed
    expected = [translation.text for translation in Translator.load(saved, device="cpu").translations(lines)]
    assert (tmp_path / "out.txt").read_text().splitlines() == expected


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingExtraError, match=r"--ray needs the extra \[ray\]"),
        cluster_map(lambda: str, "local"),
    ):
        pass
