import subprocess
import sys
from pathlib import Path

import pytest

from allyouneed.machine.interpreter import environment, is_installed, python_command, versions


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


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["/usr/bin/allyouneed", "train", "a b.tsv"], "allyouneed train 'a b.tsv'"),
        (["/lib/allyouneed/__main__.py", "demo"], "python -m allyouneed demo"),
        (["allyouneed", "train", "r\udce4"], r"allyouneed train 'r\udce4'"),
    ],
)
def test_the_environment_says_how_the_program_was_called(
    monkeypatch: pytest.MonkeyPatch, words: list[str], command: str
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    facts = environment()
    assert facts["command"] == command
    assert facts["versions"] == versions()
    assert facts["processor"].endswith(" cores")
