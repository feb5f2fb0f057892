import subprocess
import sys
from pathlib import Path

import pytest

from allyouneed.interpreter import is_installed, python_command


def test_a_folder_with_the_name_of_a_library_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "board").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert not is_installed("board")
    (tmp_path / "board/__init__.py").touch()
    assert is_installed("board")
    assert not is_installed("no_such_library")


@pytest.mark.parametrize("here", ["", "the folder itself", "neither"])
def test_a_new_process_looks_in_the_current_folder_only_if_this_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    """As `python -m` and `python -c` do, and as a script that was installed does not."""
    (tmp_path / "mine.py").write_text("print('here')")
    monkeypatch.chdir(tmp_path)
    paths = [path for path in sys.path if path]
    monkeypatch.setattr(sys, "path", paths if here == "neither" else [str(tmp_path) if here else "", *paths])
    done = subprocess.run(python_command("mine"), capture_output=True, text=True, check=False)
    assert (done.stdout == "here\n") == (here != "neither"), done.stderr
