import contextlib
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from allyouneed import recipe_path
from allyouneed.bundle import Bundle
from allyouneed.errors import BundleError, ConfigError, OutputError
from allyouneed.machine.files import (
    append,
    check_output_file,
    folder_written_whole,
    followed,
    locked,
    parse_json,
    read_json_lines,
    read_whole,
    refuse_to_replace,
    to_json,
    write_whole,
    written_whole,
)


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


@pytest.mark.parametrize("name", ["folder", ".out.partial"])
def test_a_stop_that_comes_as_soon_as_a_folder_is_there_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Python may raise what a signal asks for as soon as the call that made the folder has returned."""
    make = os.mkdir

    def make_and_stop(path: Path, mode: int = 0o777) -> None:
        make(path, mode)
        if Path(path).name == name:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", make_and_stop)
    with pytest.raises(KeyboardInterrupt), folder_written_whole(tmp_path / "folder" / "out"):
        raise AssertionError("the block of an interrupted folder does not run")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="nowhere/file"):
        write_whole(tmp_path / "nowhere" / "file", b"")


def test_what_exists_is_not_replaced(tmp_path: Path) -> None:
    refuse_to_replace(tmp_path / "new", what="a run")
    with pytest.raises(OutputError, match="--output.*--overwrite"):
        refuse_to_replace(tmp_path, what="a run")


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    for content in (b"into nothing", b"over what was there"):
        write_whole(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder/file").read_bytes() == content


def test_the_present_folder_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run/data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run/data")
    assert followed(Path()) == tmp_path / "run/data"
    assert followed(Path("..")) == tmp_path / "run"
    assert followed(Path("../data")) == Path("../data")
    with locked(Path(), what="the run"):
        assert (tmp_path / "run/.data.lock").exists()


def test_a_device_is_written_to_and_stays_one() -> None:
    write_whole(Path("/dev/null"), b"gone")
    assert Path("/dev/null").is_char_device()
    check_output_file(Path("/dev/null"), what="a test", overwrite=False)
    with pytest.raises(OutputError, match="/dev/full"):
        write_whole(Path("/dev/full"), b"too much")


def test_a_named_pipe_hands_on_what_is_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        read = pool.submit((tmp_path / "pipe").read_bytes)
        write_whole(tmp_path / "pipe", b"through")
        assert read.result() == b"through"
    assert (tmp_path / "pipe").is_fifo()


def test_a_pipe_or_a_device_in_place_of_a_stored_file_is_refused_at_once(saved: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(OSError, match="a pipe"):
            read_whole(path)
        with pytest.raises(ConfigError, match="a pipe"):
            recipe_path(path)
    with pytest.raises(OutputError, match="a pipe"):
        append(pipe, "lost")
    for name in ("config.json", "weights.safetensors", "tokenizer.json", "README.md"):
        (saved / name).replace(tmp_path / "kept")
        pipe.replace(saved / name)
        with pytest.raises(BundleError, match="a pipe"):
            Bundle.load(saved)
        (saved / name).replace(pipe)
        (tmp_path / "kept").replace(saved / name)


def test_a_pipe_under_the_name_of_a_partial_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f".file.{os.getpid()}.partial")
    write_whole(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_processes_that_write_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    file = tmp_path / "[a] file"
    here, alive, killed = (tmp_path / f".{file.name}.{pid}.partial" for pid in (os.getpid(), os.getppid(), 2**22 + 1))
    for path in (alive, killed, other := tmp_path / f".{file.name}.mine.partial"):
        path.write_text("half")
    with written_whole(file) as growing:
        growing.write(b"whole")
        assert sorted(tmp_path.iterdir()) == sorted([here, alive, other])  # what a killed process left is gone
    assert sorted(tmp_path.iterdir()) == sorted([file, alive, other])
    assert file.read_bytes() == b"whole"


def test_an_output_that_cannot_be_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("text")
    (tmp_path / "input").write_text("text")
    (tmp_path / "link").symlink_to("input")
    (tmp_path / "hard").hardlink_to(tmp_path / "input")

    def refused(path: Path, *, overwrite: bool = True) -> str:
        with pytest.raises(OutputError) as error:
            check_output_file(path, what="the page", overwrite=overwrite, inputs=[tmp_path / "input"])
        return str(error.value)

    assert "a folder" in refused(tmp_path)
    assert "no folder" in refused(tmp_path / "nowhere/file")
    assert "already exists" in refused(tmp_path / "old", overwrite=False)
    for name, words in {"input": "named twice", "link": "one file", "hard": "one file"}.items():
        assert words in refused(tmp_path / name)
    with contextlib.chdir(tmp_path), socket.socket(socket.AF_UNIX) as sock:
        sock.bind("socket")
        assert str(tmp_path / "socket") in refused(tmp_path / "socket")


def test_one_process_at_a_time_holds_a_lock_and_a_dead_one_holds_none(tmp_path: Path) -> None:
    path = tmp_path / "out"
    code = """
import pathlib, sys
from allyouneed.machine.files import followed, locked
with locked(pathlib.Path(sys.argv[1]), what="x"):
    print("held", flush=True)
    sys.stdin.read()
"""
    other = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        with (
            pytest.raises(OutputError, match="another process"),
            locked(path, what="the run"),
        ):
            raise AssertionError
        other.kill()
    with locked(path, what="the run"):
        assert [file.name for file in tmp_path.iterdir()] == [".out.lock"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "socket"])
def test_a_lock_that_is_no_file_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lock = Path(".out.lock")
    with socket.socket(socket.AF_UNIX) as listener:
        match kind:
            case "pipe":
                os.mkfifo(lock)
            case "device":
                lock.symlink_to("/dev/null")
            case "folder":
                lock.mkdir()
            case _:
                listener.bind(str(lock))
        for wait in (True, False):
            with (
                pytest.raises(OutputError, match=r"^\.out\.lock"),
                locked(Path("out"), what="x", wait=wait),
            ):
                raise AssertionError
    assert os.path.lexists(lock)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"a": 1', "JSON: .*position 8"),
        ("[\n1 2]", "JSON: .*line 2, position 3"),
        (b'"\xff"', "JSON: .*UTF-8 .*byte 2"),
        ("[" * 100_000, "nested .*deeply"),
        ("9" * 5_000, "thousands"),
    ],
)
def test_what_is_not_json_is_refused_in_one_way(content: str | bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(content)


def test_json_has_null_for_what_is_not_finite() -> None:
    assert to_json({"a": [1.5, float("nan"), (float("inf"),)], "b": True}) == '{"a": [1.5, null, [null]], "b": true}'


def test_only_a_line_feed_ends_a_line_of_json(tmp_path: Path) -> None:
    texts = ["a\u2028b", "c\u2029\x85d\r\n\x0c"]
    (tmp_path / "lines").write_bytes("".join(to_json(text) + "\n" for text in texts).encode() + b'"cut of')
    assert read_json_lines(tmp_path / "lines") == texts


def test_nobody_splits_lines_at_the_other_ends_that_a_text_may_hold() -> None:
    """str.splitlines ends a line at U+2028 too, and would cut a text in two."""
    import allyouneed

    files = Path(allyouneed.__file__).parent.rglob("*.py")
    assert [file for file in files if ".splitlines(" in file.read_text(encoding="utf-8")] == []
