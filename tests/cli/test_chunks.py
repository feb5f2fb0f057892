"""`translate` on files of any size: line by line, in little memory, and again after a kill."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

from allyouneed.apps.cli.chunks import Chunk, is_typed_text, read_chunks
from allyouneed.apps.cli.resumable import notes_path, partial_path, row_writer
from allyouneed.errors import DataError, InputError, Interrupted, OutputError
from allyouneed.text.lines import LONGEST_LINE, TOO_LONG
from shell import ENVIRONMENT, refusal, run, run_here
from waiting import PATIENCE, wait_until


def test_a_file_is_read_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\ntwo \nthree")
    parts = [(part.first, part.lines) for part in read_chunks(str(path), size=3)]
    assert parts == [(1, ["one", "", "two"]), (4, ["three"])]
    path.write_bytes(b"one\rtwo\r")
    with pytest.raises(DataError, match="text has lines that end in a carriage return alone"):
        list(read_chunks(str(path), size=3))


def test_what_is_not_utf8_is_told_by_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\n" * 5 + b"\xff\n")
    *whole, last = read_chunks(str(tmp_path / "text"), size=2)
    assert [(part.lines, part.error) for part in whole] == 2 * [(["a", "a"], None)]
    assert last.lines == ["a"]
    assert str(last.error).endswith(
        "line 6 is not UTF-8: byte 0xff at position 1 of the line; convert the file to UTF-8 first"
    )


def test_utf_16_without_a_mark_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("ab\ncd\n".encode("utf-16-le"))
    (part,) = read_chunks(str(tmp_path / "text"), size=2)
    assert "line 1 has zero bytes: it is UTF-16, or no text; convert the file to UTF-8" in str(part.error)


@pytest.mark.parametrize("live", [False, True])
def test_a_line_too_long_to_hold_is_refused_or_left_out(live: bool) -> None:
    content = b"one\n" + bytes(3 * LONGEST_LINE) + b"\ntwo\n" + b"a" * LONGEST_LINE + b"\n" + b"b" * (LONGEST_LINE + 1)
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(content))):
        (*parts,) = read_chunks("-", size=2, live=live, skip_refused=True)
    assert [len(line) for part in parts for line in part.lines] == [3, 0, 3, LONGEST_LINE, 0]
    refused = {number: reason for part in parts for number, reason in part.refused.items()}
    assert refused == {2: TOO_LONG, 5: TOO_LONG}
    with (
        open("/dev/zero", encoding="utf-8") as endless,
        mock.patch.object(sys, "stdin", endless),
    ):
        (part,) = read_chunks("-", size=2, live=live)
    assert "standard input, line 1 is longer than 1,048,576 bytes" in str(part.error)


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
    with pytest.raises(Interrupted, match="stopped; the same command with --resume continues"):
        write(tmp_path / "out", ["a", "b", "c", "d", "e"], stop_after=4)
    partial = partial_path(tmp_path / "out")
    partial.write_bytes(partial.read_bytes() + b"e\ntorn")
    assert write(tmp_path / "out", ["a", "b", "c", "d", "E", "f"], resume=True) == ["E", "f"]  # e was mended
    assert (tmp_path / "out").read_bytes() == b"a\nb\nc\nd\nE\nf\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


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
    with pytest.raises(Interrupted, match="stopped; the same command with --resume continues"):
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
    with pytest.raises(OutputError, match="another program has shortened it to less than 8 bytes"):
        write(tmp_path / "out", lines, resume=True)
    notes_path(tmp_path / "out").unlink()
    with pytest.raises(OutputError, match="made from unknown input"):
        write(tmp_path / "out", lines, resume=True)
    assert write(tmp_path / "out", lines) == lines


def test_a_result_that_another_process_makes_is_left_alone(tmp_path: Path) -> None:
    with row_writer(tmp_path / "out", provenance={}) as out:
        with pytest.raises(OutputError, match="out.partial is being written by another process"):
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
    assert "out.partial exists already" in refusal(*words, "--output", tmp_path / "out")
    resumed = run_here(*words, "--output", tmp_path / "out", "--resume")
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert b"nothing to go on with" in run_here(*words, "--output", tmp_path / "out", "--resume").stderr


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
    assert process.communicate()[1] == b"allyouneed: stopped; the same command with --resume continues\n"
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
    assert "is being written by another process; wait for it" in second.stderr.decode()
    _, errors = process.communicate(lines, timeout=PATIENCE)
    assert process.returncode == 0, errors.decode()
    assert run_here(*words[:2], tmp_path / "in", "--batch-size", "1", "--output", tmp_path / "alone").returncode == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "alone").read_bytes()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith((".out", "out."))]


def test_a_refused_line_keeps_the_lines_before_it(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n" * 40 + "X\n")
    message = refusal("translate", saved, tmp_path / "in", "--batch-size", "1", "--output", tmp_path / "out")
    assert "line 41: 'X' at position 1" in message
    assert "correct the line, then --resume" in message
    (tmp_path / "in").write_text("a\n" * 40 + "b\n")
    words = ["translate", saved, tmp_path / "in", "--batch-size", "1", "--output", tmp_path / "out", "--resume"]
    assert run_here(*words).returncode == 0
    assert (tmp_path / "out").read_bytes().count(b"\n") == 41


@pytest.mark.parametrize("line", [b"X", b"\xff", b"a" * 30])
def test_the_lines_before_a_refused_line_are_printed(saved: Path, tmp_path: Path, line: bytes) -> None:
    """Also if they are of one chunk with it."""
    (tmp_path / "in").write_bytes(b"abc\n\nde\n" + line + b"\nf\n")
    result = run_here("translate", saved, tmp_path / "in")
    assert result.returncode == 2
    assert b"line 4" in result.stderr
    assert result.stdout == run_here("translate", saved, stdin=b"abc\n\nde\n").stdout
    kept = run_here("translate", saved, tmp_path / "in", "--output", tmp_path / "out")
    assert b"out.partial; correct the line, then --resume)" in kept.stderr
    assert (tmp_path / "out.partial").read_bytes() == result.stdout


def test_standard_input_is_answered_as_it_comes(saved: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", "translate", str(saved)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    with process:
        for _ in range(2):
            process.stdin.write(b"abc\n")
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")  # before the input has ended
        process.stdin.close()


def test_json_has_everything_that_was_asked_for(saved: Path) -> None:
    words = ["translate", saved, "--json", "--nbest", "2", "--alignments", "tokens"]
    rows = [json.loads(line) for line in run_here(*words, stdin=b"abc\n\nde\n").stdout.splitlines()]
    assert [row["source"] for row in rows] == ["abc", "", "de"]
    units = {"source_units", "target_units"}
    assert set(rows[0]) == {"source", "text", "confidence", "flags", "alternatives", "alignment"} | units
    assert rows[0]["source_units"] == ["a", "b", "c"]
    assert rows[0]["confidence"] < 0
    assert rows[1] == {"source": "", "text": "", "confidence": 0.0, "flags": []}


def test_a_stream_shows_what_greedy_search_finds(saved: Path) -> None:
    greedy = run_here(
        "translate",
        saved,
        "--beam",
        "1",
        "decode.copy_untranslatable=false",
        "decode.retry_repetition=false",
        stdin=b"abc\n\nde\n",
    )
    assert (
        run_here(
            "translate",
            saved,
            "--stream",
            "decode.copy_untranslatable=false",
            "decode.retry_repetition=false",
            stdin=b"abc\n\nde\n",
        ).stdout
        == greedy.stdout
    )
    assert "line 2: 'X' at position 1" in run_here("translate", saved, "--stream", stdin=b"a\nX\n").stderr.decode()
    message = refusal("translate", saved, "--stream", "--json", "--beam", "3", stdin=b"a\n")
    assert "--stream shows one greedy translation as it is written; leave out --json, --beam" in message


def test_alternatives_stand_side_by_side(saved: Path) -> None:
    words = ["translate", saved, "--alternatives", "3", "--prefix"]
    first, second, third = run_here(*words, "de", stdin=b"abc\n\nij\n").stdout.decode().splitlines()
    assert run_here(*words, " de ", stdin=b"abc\n").stdout.decode().splitlines() == [first]
    assert second == ""
    for line in (first, third):
        assert len({column[2] for column in line.split("\t") if column.startswith("de")}) == 3


@pytest.mark.slow
def test_forty_thousand_lines_need_no_more_memory_than_some(saved: Path, tmp_path: Path) -> None:
    """The most memory a run ever held, in MiB, for 4,000 lines and for 40,000."""
    most = []
    for count in (4_000, 40_000):
        path = tmp_path / f"{count}"
        path.write_text("".join(f"{'abcdefghij'[n % 10]}\n" for n in range(count)))
        code = (
            "import resource, sys; from allyouneed.apps.cli import app; "
            "app(sys.argv[1:], standalone_mode=False); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)"
        )
        words = [
            "translate",
            str(saved),
            str(path),
            "--beam",
            "1",
            "--batch-size",
            "100",
            "--max-length",
            "2",
            "decode.copy_untranslatable=false",
            "decode.retry_repetition=false",
        ]
        result = subprocess.run(
            [sys.executable, "-c", code, *words, "--output", f"{path}.out"],
            capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr.decode()
        most.append(int(result.stderr))
        assert (tmp_path / f"{count}.out").read_bytes().count(b"\n") == count
    assert most[1] < most[0] + 10, most


def test_a_refused_line_can_be_left_out(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"abc\nX\n\n\xff\nde\n")
    plain = run_here("translate", saved, tmp_path / "in", "--skip-refused")
    assert plain.returncode == 3
    first, *middle, last = plain.stdout.decode().splitlines()
    assert (bool(first), middle, bool(last)) == (True, ["", "", ""], True)
    messages = plain.stderr.decode()
    assert "in, line 2, left out: 'X' at position 1" in messages
    assert "in, line 4, left out: is not UTF-8: byte 0xff at position 1" in messages
    assert messages.endswith("2 lines were refused and left empty\n")
    rows = run_here("translate", saved, tmp_path / "in", "--skip-refused", "--json", "--output", tmp_path / "out")
    assert rows.returncode == 3
    errors = [json.loads(line).get("error", "")[:12] for line in (tmp_path / "out").read_text().splitlines()]
    assert errors == ["", "'X' at posit", "", "is not UTF-8", ""]
    assert run_here("translate", saved, "--skip-refused", stdin=b"abc\n").returncode == 0
    streamed = run_here("translate", saved, "--skip-refused", "--stream", stdin=b"X\nabc\n")
    assert (streamed.returncode, streamed.stdout[:1]) == (3, b"\n")


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
        assert re.search("(are one file|is named twice): the translation would destroy what it is made from", line)
    assert (tmp_path / "out.partial").read_text() == out.read_text() == "a\n"


def test_named_pipes_are_read_and_written(saved: Path, tmp_path: Path) -> None:
    for name in ("in", "out"):
        os.mkfifo(tmp_path / name)
    with ThreadPoolExecutor() as pool:
        pool.submit((tmp_path / "in").write_text, "abc\n\n")
        read = pool.submit((tmp_path / "out").read_bytes)
        result = run_here("translate", saved, tmp_path / "in", "--output", tmp_path / "out")
        assert result.returncode == 0, result.stderr.decode()
        assert read.result().count(b"\n") == 2
    assert b"waiting for the other end of the pipe" in result.stderr
    assert (tmp_path / "out").is_fifo()
    assert "is a device or a pipe" in refusal("translate", saved, "--output", tmp_path / "out", "--resume")


@pytest.mark.parametrize(
    ("argument", "is_text"),
    [
        ("1845-01-05", True), ("A dog.", True), ("Mr. Smith", True), ("and/or we go", True), ("Hi!", True),
        ("-", False), ("news.en", False), ("data/news", False), ("a.txt.gz", False), (".", False),
    ],
)  # fmt: skip
def test_what_is_no_file_and_looks_like_none_is_a_text(argument: str, is_text: bool) -> None:
    assert is_typed_text(argument) == is_text
