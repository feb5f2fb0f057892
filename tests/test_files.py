from pathlib import Path

import pytest

from allyouneed.errors import OutputError
from allyouneed.files import refuse_to_replace, write_whole, written_whole


def test_a_file_appears_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", "naïve\n")
    assert (tmp_path / "file").read_bytes() == "naïve\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_or_not_at_all(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", b"before")

    def interrupted() -> None:
        with written_whole(tmp_path / "file") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "file").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nowhere/file could not be written: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "file", b"")


def test_what_exists_is_not_replaced(tmp_path: Path) -> None:
    refuse_to_replace(tmp_path / "new", what="a run")
    with pytest.raises(OutputError, match="exists already, and a run would replace it; .*--output.*--overwrite"):
        refuse_to_replace(tmp_path, what="a run")
