"""Output that a later run continues: after a refused line, a signal or a kill."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from allyouneed.apps.cli.chunks import Chunk
from allyouneed.apps.cli.resumable import notes_path, partial_path, row_writer
from allyouneed.errors import InputError, Interrupted, OutputError
from shell import ENVIRONMENT, refusal, run, run_here
from waiting import PATIENCE, wait_until


def write(output: Path, lines: list[str], *, resume: bool = False, stop_after: int = 9, beam: int = 2) -> list[str]:
    """Copy lines to `output`, two at a time, and say which were not there yet."""
    new = list[str]()
    chunks = [Chunk(i + 1, lines[i : i + 2]) for i in range(0, len(lines), 2)]
    with row_writer(output, provenance={"beam": beam}, resume=resume) as out:
        for chunk in out.missing(chunks, lambda _: None):
            if chunk.first > stop_after:
                raise KeyboardInterrupt
            chunk.rows = [f"{line}\n" for line in chunk.lines]
            new += chunk.lines
            out.write(chunk)
    return new


def test_a_result_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("out")
    assert write(tmp_path / "link", ["a", "b", "c"]) == ["a", "b", "c"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]
    assert (tmp_path / "out").read_bytes() == b"a\nb\nc\n"


def test_a_stopped_result_is_continued_after_its_last_complete_chunk(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="--resume"):
        write(tmp_path / "out", ["a", "b", "c", "d", "e"], stop_after=4)
    partial = partial_path(tmp_path / "out")
    partial.write_bytes(partial.read_bytes() + b"e\ntorn")
    assert write(tmp_path / "out", ["a", "b", "c", "d", "E", "f"], resume=True) == ["E", "f"]  # e was mended
    assert (tmp_path / "out").read_bytes() == b"a\nb\nc\nd\nE\nf\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_rows_are_written_waits_for_their_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    sync, signals = os.fsync, [number]

    def signalled(descriptor: int) -> None:
        if signals and partial_path(tmp_path / "out").stat().st_size:
            signal.raise_signal(signals.pop())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", signalled)
    with pytest.raises(Interrupted, match="--resume continues") as stop:
        write(tmp_path / "out", ["a", "b", "c", "d"])
    assert stop.value.signal == number
    assert json.loads(notes_path(tmp_path / "out").read_text())["lines"] == 2
    assert partial_path(tmp_path / "out").read_bytes() == b"a\nb\n"


def test_a_result_is_continued_within_a_chunk(tmp_path: Path) -> None:
    """The earlier run ended at a line that was refused, with a chunk of one row."""
    written = [Chunk(1, ["a", "b"], {1: "why"}, ["A\n", "B\n"]), Chunk(3, ["c", "X"], {}, ["C\n"])]
    with suppress(InputError), row_writer(tmp_path / "out", provenance={"beam": 2}) as out:
        for chunk in written:
            out.write(chunk)
        raise InputError("X")
    with row_writer(tmp_path / "out", provenance={"beam": 2}, resume=True) as out:
        chunks = [Chunk(1, ["a", "b"], {1: "why"}), Chunk(3, ["c", "x"], {4: "too"}), Chunk(5, ["e"])]
        left = list(out.missing(chunks, lambda _: None))
        assert [(chunk.first, chunk.lines, chunk.refused) for chunk in left] == [(4, ["x"], {4: "too"}), (5, ["e"], {})]
        assert out.refused == 1
        for chunk in left:
            chunk.rows = [f"{line.upper()}\n" for line in chunk.lines]
            out.write(chunk)
        assert out.refused == 2
    assert (tmp_path / "out").read_bytes() == b"A\nB\nC\nX\nE\n"


def test_a_result_of_something_else_is_not_gone_on_with(tmp_path: Path) -> None:
    lines = ["a", "b", "c", "d", "e"]
    with pytest.raises(Interrupted, match="--resume"):
        write(tmp_path / "out", lines, stop_after=4)
    partial = partial_path(tmp_path / "out")
    before = partial.read_bytes()
    for other, beam, why in (
        (["a", "B", "c", "d", "e"], 2, "another input: its first 4 lines were different"),
        (["a", "b"], 2, "another input, which had at least 4 lines"),
        (lines, 3, "made from beam 2, not 3"),
    ):
        with pytest.raises(OutputError, match=why):
            write(tmp_path / "out", other, resume=True, beam=beam)
        assert partial.read_bytes() == before
    partial.write_bytes(b"a\n")
    with pytest.raises(OutputError, match="8 bytes"):
        write(tmp_path / "out", lines, resume=True)
    notes_path(tmp_path / "out").unlink()
    with pytest.raises(OutputError, match="unknown input"):
        write(tmp_path / "out", lines, resume=True)
    assert write(tmp_path / "out", lines) == lines


def test_a_result_that_another_process_makes_is_left_alone(tmp_path: Path) -> None:
    with row_writer(tmp_path / "out", provenance={}) as out:
        with pytest.raises(OutputError, match=r"out\.partial"):
            write(tmp_path / "out", ["a"], resume=True)
        out.write(Chunk(1, ["a"], {}, ["a\n"]))
    assert (tmp_path / "out").read_bytes() == b"a\n"


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    lines = "".join(f"{'abcdefghij'[n % 10] * (n % 7)}\n" for n in range(200))
    (tmp_path / "in").write_text(lines)
    words = ["translate", saved, tmp_path / "in", "--batch-size", "1", "--sample"]
    assert run_here(*words, "--output", tmp_path / "whole").returncode == 0
    partial = tmp_path / "out.partial"
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", *map(str, words[:2] + words[3:]), "--output", str(tmp_path / "out")],
        env=ENVIRONMENT, stdin=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    with process:
        process.stdin.write(lines[:600].encode())  # it waits for the rest until it is killed
        process.stdin.flush()
        wait_until(lambda: partial.exists() and partial.stat().st_size, process)
        process.kill()
    assert partial.exists()
    assert not (tmp_path / "out").exists()
    with partial.open("ab") as file:
        file.write(b"torn")
    assert "already exists" in refusal(*words, "--output", tmp_path / "out")
    resumed = run_here(*words, "--output", tmp_path / "out", "--resume")
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    complete = run_here(*words, "--output", tmp_path / "out", "--resume")
    assert complete.returncode == 0
    assert b"complete" in complete.stderr
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_asked_to_stop_says_how_to_continue(
    saved: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", "translate", str(saved), "--batch-size", "1", "-o", str(tmp_path / "out")],
        env=ENVIRONMENT, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    process.stdin.write(b"abc\n" * 60)  # more than one chunk; it waits for the rest
    process.stdin.flush()
    partial = tmp_path / "out.partial"
    wait_until(lambda: partial.exists() and partial.stat().st_size, process)
    process.send_signal(number)
    try:
        process.wait(timeout=PATIENCE)  # its input stays open
    finally:
        process.kill()
    assert re.fullmatch(rb"allyouneed: stopped; .*--resume.*\n", process.communicate()[1])
    assert process.returncode == code
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.partial", "out.partial.jsonl"]


@pytest.mark.slow
def test_of_two_processes_that_resume_one_output_one_is_refused(saved: Path, tmp_path: Path) -> None:
    lines = "".join(f"{'abcdefghij'[n % 10] * (n % 7)}\n" for n in range(200)).encode()
    (tmp_path / "in").write_bytes(lines)
    (tmp_path / "cut").write_bytes(lines[:400] + b"X\n")
    words = ["translate", saved, "--batch-size", "1", "--output", tmp_path / "out", "--resume"]
    assert b"--resume" in run_here(*words[:2], tmp_path / "cut", *words[2:]).stderr  # leaves some lines
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", *map(str, words)], env=ENVIRONMENT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until((tmp_path / ".out.partial.lock").exists, process)
    second = run(*words[:2], tmp_path / "in", *words[2:])
    assert second.returncode == 2
    assert second.stderr.decode().count("\n") == 1
    assert "another process" in second.stderr.decode()
    _, errors = process.communicate(lines, timeout=PATIENCE)
    assert process.returncode == 0, errors.decode()
    assert run_here(*words[:2], tmp_path / "in", "--batch-size", "1", "--output", tmp_path / "alone").returncode == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "alone").read_bytes()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith((".out", "out."))]


def test_a_refused_line_keeps_the_lines_before_it(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n" * 40 + "X\n")
    message = refusal("translate", saved, tmp_path / "in", "--batch-size", "1", "--output", tmp_path / "out")
    assert "line 41: 'X' at position 1" in message
    assert "--resume" in message
    (tmp_path / "in").write_text("a\n" * 40 + "b\n")
    words = ["translate", saved, tmp_path / "in", "--batch-size", "1", "--output", tmp_path / "out", "--resume"]
    assert run_here(*words).returncode == 0
    assert (tmp_path / "out").read_bytes().count(b"\n") == 41


def test_an_input_is_never_its_own_output(saved: Path, tmp_path: Path) -> None:
    for name in ("out", "out.partial", "terms"):
        (tmp_path / name).write_text("a\n")
    (tmp_path / "link").symlink_to("out")
    out = tmp_path / "out"
    for words in (
        [out, "--output", out, "--overwrite"],
        [tmp_path / "link", "--output", out, "--overwrite"],
        [tmp_path / "out.partial", "--format", "lines", "--output", tmp_path / "out", "--overwrite"],
        [tmp_path / "out.partial", "--format", "lines", "--output", tmp_path / "out", "--resume"],
        ["-", "--glossary", out, "--output", tmp_path / "link", "--overwrite"],
        ["-", "--output", saved / "config.json", "--overwrite"],
    ):
        line = refusal("translate", saved, *words)
        assert re.search("one file|named twice", line)
    assert (tmp_path / "out.partial").read_text() == out.read_text() == "a\n"
