"""`translate` on files of any size: line by line, in little memory, and again after a kill."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from allyouneed.cli.flow import growing, lines_there, partial_of, stretches
from allyouneed.errors import DataError, OutputError
from shell import ENVIRONMENT, refusal, run_here


def test_a_file_comes_in_stretches_and_can_be_entered_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\ntwo \nthree")
    assert [tuple(part) for part in stretches(str(path), size=3)] == [(1, ["one", "", "two"]), (4, ["three"])]
    assert [tuple(part) for part in stretches(str(path), size=3, skip=3)] == [(4, ["three"])]
    assert [tuple(part) for part in stretches(str(path), size=3, skip=2)] == [(3, ["two"]), (4, ["three"])]
    with pytest.raises(OutputError, match="has 4 lines, but 5 are translated already"):
        list(stretches(str(path), size=3, skip=5))


def test_what_is_not_utf8_is_told_by_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\n" * 5 + b"\xff\n")
    with pytest.raises(DataError, match="line 6 is not UTF-8: byte 0xff at place 1"):
        list(stretches(str(tmp_path / "text"), size=2))


def test_a_torn_stretch_is_cut_off(tmp_path: Path) -> None:
    partial = tmp_path / "out.partial"
    assert lines_there(partial, multiple=2) == 0
    partial.write_text("a\nb\nc\nd\ne\nto")
    assert lines_there(partial, multiple=2) == 4
    assert partial.read_text() == "a\nb\nc\nd\n"


def test_a_result_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with growing(output, begun=False) as file:
        file.write(b"a\n")
        assert not output.exists()
        assert partial_of(output).exists()
    assert output.read_bytes() == b"a\n"
    assert not partial_of(output).exists()
    with pytest.raises(ZeroDivisionError), growing(tmp_path / "other", begun=False) as file:
        file.write(b"b\n" * (1 // (file.write(b"b\n") - 2)))
    assert partial_of(tmp_path / "other").read_bytes() == b"b\n"


def test_a_killed_run_goes_on_to_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    lines = "".join(f"{'abcdefghij'[n % 10] * (n % 7)}\n" for n in range(200))
    (tmp_path / "in").write_text(lines)
    words = ["translate", saved, tmp_path / "in", "--batch", "1", "--sample"]
    assert run_here(*words, "--output", tmp_path / "whole").returncode == 0
    partial = tmp_path / "out.partial"
    process = subprocess.Popen(
        [sys.executable, "-m", "allyouneed", *map(str, words), "--output", str(tmp_path / "out")], env=ENVIRONMENT
    )
    deadline = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert partial.exists()
    assert not (tmp_path / "out").exists()
    with partial.open("ab") as file:
        file.write(b"torn")
    assert "out.partial exists already" in refusal(*words, "--output", tmp_path / "out")
    resumed = run_here(*words, "--output", tmp_path / "out", "--resume")
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert b"nothing to go on with" in run_here(*words, "--output", tmp_path / "out", "--resume").stderr


def test_a_refused_line_keeps_the_lines_before_it(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n" * 40 + "X\n")
    said = refusal("translate", saved, tmp_path / "in", "--batch", "1", "--output", tmp_path / "out")
    assert "line 41: 'X' at place 1" in said
    assert "mend it, then --resume" in said
    (tmp_path / "in").write_text("a\n" * 40 + "b\n")
    words = ["translate", saved, tmp_path / "in", "--batch", "1", "--output", tmp_path / "out", "--resume"]
    assert run_here(*words).returncode == 0
    assert (tmp_path / "out").read_bytes().count(b"\n") == 41


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
    greedy = run_here("translate", saved, "--beam", "1", "--no-guard", stdin=b"abc\n\nde\n")
    assert run_here("translate", saved, "--stream", "--no-guard", stdin=b"abc\n\nde\n").stdout == greedy.stdout
    assert "line 2: 'X' at place 1" in run_here("translate", saved, "--stream", stdin=b"a\nX\n").stderr.decode()
    said = refusal("translate", saved, "--stream", "--json", "--beam", "3", stdin=b"a\n")
    assert "--stream shows one greedy translation as it is written; leave out --json, --beam" in said


def test_alternatives_stand_side_by_side(saved: Path) -> None:
    words = ["translate", saved, "--alternatives", "3", "--prefix", "de"]
    first, second, third = run_here(*words, stdin=b"abc\n\nij\n").stdout.decode().splitlines()
    assert second == ""
    for line in (first, third):
        assert len({column[2] for column in line.split("\t") if column.startswith("de")}) == 3


def test_a_hundred_thousand_lines_need_no_more_memory_than_some(saved: Path, tmp_path: Path) -> None:
    """The most memory a run ever held, in MiB, for 4,000 lines and for 100,000."""
    most = []
    for count in (4_000, 100_000):
        path = tmp_path / f"{count}"
        path.write_text("".join(f"{'abcdefghij'[n % 10]}\n" for n in range(count)))
        code = (
            "import resource, sys; from allyouneed.cli import app; "
            "app(sys.argv[1:], standalone_mode=False); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)"
        )
        words = ["translate", str(saved), str(path), "--beam", "1", "--batch", "100", "--max-length", "2", "--no-guard"]
        result = subprocess.run(
            [sys.executable, "-c", code, *words, "--output", f"{path}.out"],
            capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr.decode()
        most.append(int(result.stderr))
        assert (tmp_path / f"{count}.out").read_bytes().count(b"\n") == count
    assert most[1] < most[0] + 10, most
