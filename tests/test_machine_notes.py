"""Where a note stands says what it depends on."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed import machine_notes
from allyouneed.machine_notes import note_path, read_note, write_note
from conftest import SMALL


@pytest.mark.parametrize("greatest", [None, 127, 255])
def test_what_was_noted_is_read(greatest: int | None) -> None:
    assert read_note("compared", SMALL, "a") == {}
    write_note({"greatest": greatest}, "compared", SMALL, "a")
    assert read_note("compared", SMALL, "a") == {"greatest": greatest}
    assert read_note("compared", SMALL, "b") == read_note("speed", SMALL, "a") == {}
    assert read_note("compared", replace(SMALL, norm="pre"), "a") == {}


@pytest.mark.parametrize("variable", machine_notes.VARIABLES)
def test_with_other_instructions_nothing_is_known(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = note_path("compared", SMALL, "a")
    monkeypatch.setenv(variable, "default")
    assert note_path("compared", SMALL, "a") != here


def test_after_an_edit_of_any_file_that_computes_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = Path(machine_notes.__file__).parent
    copy = tmp_path / "allyouneed"
    for room in machine_notes.ROOMS:
        (copy / room).mkdir(parents=True)
        for file in (house / room).glob("*.py"):
            (copy / room / file.name).write_bytes(file.read_bytes())
    here = note_path("compared", SMALL, "a")
    monkeypatch.setattr(machine_notes, "__file__", str(copy / "machine_notes.py"))
    assert note_path("compared", SMALL, "a") == here
    edited = [*sorted((copy / "nn").glob("*.py")), copy / "decode" / "beam.py", copy / "light" / "engine.py"]
    seen = {here}
    for file in edited:
        file.write_text(file.read_text() + "\n")
        seen.add(note_path("compared", SMALL, "a"))
    assert len(seen) == len(edited) + 1


@pytest.mark.parametrize("content", ["{", "[1]", "", "[" * 100_000])
def test_a_note_that_cannot_be_read_is_none(content: str) -> None:
    write_note({"greatest": None}, "compared", SMALL, "a")
    note_path("compared", SMALL, "a").write_text(content)
    assert read_note("compared", SMALL, "a") == {}


def test_without_a_folder_for_notes_nothing_is_noted(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_path("compared", SMALL, "a").mkdir(parents=True)  # where the file would stand
    (tmp_path / "file").touch()
    for folder in (notes.parent, tmp_path / "file"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
        write_note({"greatest": None}, "compared", SMALL, "a")
        assert read_note("compared", SMALL, "a") == {}


def test_while_two_processes_write_a_note_it_is_whole() -> None:
    code = """
import sys
from allyouneed.machine_notes import write_note
for number in range(20):
    write_note({"numbers": [f"{sys.argv[1]}-{number}"] * 9_999}, "speed", "a")
"""
    writers = [subprocess.Popen([sys.executable, "-c", code, str(number)]) for number in range(2)]
    while any(writer.poll() is None for writer in writers):
        assert len(set(read_note("speed", "a").get("numbers", ["none yet"]))) == 1
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(read_note("speed", "a")["numbers"]) == 9_999
