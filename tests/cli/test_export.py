"""Exports as a shell makes them, and one that is stopped."""

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed.bundle import Bundle
from shell import ENVIRONMENT, refusal, run_here
from waiting import PATIENCE, wait_until


@pytest.mark.slow
def test_export_proves_what_it_made(saved: Path, tmp_path: Path) -> None:
    made = run_here("export", saved, tmp_path / "out", "--to", "ctranslate2", "--sentences", 5)
    assert made.returncode == 0, made.stderr.decode()
    assert b"5 of 5 sentences translated equally" in made.stdout
    assert (tmp_path / "out" / "model.bin").is_file()
    assert b"settings of the search" not in made.stdout
    bundle = Bundle.load(saved)
    replace(bundle, decode=replace(bundle.decode, forced_eos=True)).save(tmp_path / "forced")
    made = run_here("export", tmp_path / "forced", tmp_path / "ct2", "--to", "ctranslate2", "--sentences", 1)
    assert b"forced_eos" in made.stdout
    assert made.stdout.strip().endswith(b"forced_eos=True")


def test_an_export_that_cannot_be_is_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    other = refusal("export", saved, tmp_path / "other", "--to", "onnx", "--precision", "int8")
    assert re.search("onnx .*float32; .*'int8'", other)
    unknown = refusal("export", saved, tmp_path / "other", "--to", "foo")
    assert "Invalid value for '--to': 'foo' is not one of 'ctranslate2', 'onnx', 'huggingface', 'html' (" in unknown
    again = refusal("export", saved, tmp_path / "out", "--to", "ctranslate2")
    assert f"{tmp_path / 'out'} already exists" in again


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_export_that_is_asked_to_stop_leaves_nothing(
    saved: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    folder = tmp_path / "folder"
    words = ["export", str(saved), str(folder / "out"), "--to", "html", "--sentences", "1000000"]
    process = subprocess.Popen([sys.executable, "-m", "allyouneed", *words], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    try:
        wait_until((folder / ".out.partial").exists, process)
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == code
    finally:
        process.kill()
        process.wait()
    assert not folder.exists()
