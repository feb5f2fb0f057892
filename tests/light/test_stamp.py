"""Where the note stands says what was compared."""

from dataclasses import replace
from pathlib import Path

import pytest

from allyouneed.light import stamp
from allyouneed.light.stamp import read_stamp, stamp_path, write_stamp
from conftest import SMALL


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("greatest", [None, 127, 255])
def test_what_was_noted_is_read(greatest: int | None) -> None:
    assert read_stamp(SMALL, "a") is None
    write_stamp(SMALL, "a", greatest)
    assert read_stamp(SMALL, "a") == {"greatest": greatest}
    assert read_stamp(SMALL, "b") is None
    assert read_stamp(replace(SMALL, norm="pre"), "a") is None


def test_another_processor_and_other_instructions_are_compared_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    here = stamp_path(SMALL, "a")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert stamp_path(SMALL, "a") != here


def test_an_edit_of_any_file_that_computes_is_compared_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = Path(stamp.__file__).parent.parent
    copy = tmp_path / "allyouneed"
    for room in stamp.ROOMS:
        (copy / room).mkdir(parents=True)
        for file in (house / room).glob("*.py"):
            (copy / room / file.name).write_bytes(file.read_bytes())
    here = stamp_path(SMALL, "a")
    monkeypatch.setattr(stamp, "__file__", str(copy / "light" / "stamp.py"))
    assert stamp_path(SMALL, "a") == here
    edited = [*sorted((copy / "nn").glob("*.py")), copy / "decode" / "beam.py", copy / "light" / "engine.py"]
    seen = {here}
    for file in edited:
        file.write_text(file.read_text() + "\n")
        seen.add(stamp_path(SMALL, "a"))
    assert len(seen) == len(edited) + 1


def test_a_note_that_cannot_be_written_or_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stamp(SMALL, "a", None)
    stamp_path(SMALL, "a").write_text("{")
    assert read_stamp(SMALL, "a") is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    write_stamp(SMALL, "a", None)
    assert read_stamp(SMALL, "a") is None
