"""`translate` on files of any size: line by line, in little memory, and again after a kill."""

import io
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest

from allyouneed.apps.cli.chunks import is_typed_text, read_chunks
from allyouneed.errors import DataError
from allyouneed.text.lines import LONGEST_LINE, TOO_LONG
from messages import numbers_in
from shell import ENVIRONMENT, refusal, run_here


def test_a_file_is_read_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\ntwo \nthree")
    parts = [(part.first, part.lines) for part in read_chunks(str(path), size=3)]
    assert parts == [(1, ["one", "", "two"]), (4, ["three"])]
    path.write_bytes(b"one\rtwo\r")
    with pytest.raises(DataError, match="carriage return"):
        list(read_chunks(str(path), size=3))


def test_what_is_not_utf8_is_told_by_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\n" * 5 + b"\xff\n")
    *whole, last = read_chunks(str(tmp_path / "text"), size=2)
    assert [(part.lines, part.error) for part in whole] == 2 * [(["a", "a"], None)]
    assert last.lines == ["a"]
    assert re.search("line 6 .*UTF-8.* 0xff .*position 1 ", str(last.error))


def test_utf_16_without_a_mark_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("ab\ncd\n".encode("utf-16-le"))
    (part,) = read_chunks(str(tmp_path / "text"), size=2)
    assert "UTF-16" in str(part.error)


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
    assert numbers_in(str(part.error))[:2] == [1, 2**20]


@pytest.mark.parametrize("line", [b"X", b"\xff", b"a" * 30])
def test_the_lines_before_a_refused_line_are_printed(saved: Path, tmp_path: Path, line: bytes) -> None:
    """Also if they are of one chunk with it."""
    (tmp_path / "in").write_bytes(b"abc\n\nde\n" + line + b"\nf\n")
    result = run_here("translate", saved, tmp_path / "in")
    assert result.returncode == 2
    assert b"line 4" in result.stderr
    assert result.stdout == run_here("translate", saved, stdin=b"abc\n\nde\n").stdout
    kept = run_here("translate", saved, tmp_path / "in", "--output", tmp_path / "out")
    assert re.search(rb"out\.partial; .*--resume\)", kept.stderr)
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


def test_nbest_writes_the_score_of_each_translation(saved: Path) -> None:
    words = ["translate", saved, "--nbest", "2"]
    (row,) = map(json.loads, run_here(*words, "--json", stdin=b"abc\n").stdout.splitlines())
    first, score, second, worse = run_here(*words, stdin=b"abc\n").stdout.decode().rstrip("\n").split("\t")
    assert [first, second] == [row["text"], row["alternatives"][0]["text"]]
    assert float(score) == pytest.approx(row["confidence"], abs=1e-4)
    assert float(worse) == pytest.approx(row["alternatives"][0]["confidence"], abs=1e-4)


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
    assert "line 2: 'X'" in run_here("translate", saved, "--stream", stdin=b"a\nX\n").stderr.decode()
    message = refusal("translate", saved, "--stream", "--json", "--beam", "3", stdin=b"a\n")
    assert re.search("--stream .*--json, --beam", message)


def test_alternatives_stand_side_by_side(saved: Path) -> None:
    words = ["translate", saved, "--alternatives", "3", "--prefix"]
    first, second, third = run_here(*words, "de", stdin=b"abc\n\nij\n").stdout.decode().splitlines()
    assert run_here(*words, " de ", stdin=b"abc\n").stdout.decode().splitlines() == [first]
    assert second == ""
    for line in (first, third):
        assert len({column[2] for column in line.split("\t") if column.startswith("de")}) == 3


@pytest.mark.slow
def test_ten_thousand_lines_need_no_more_memory_than_some(saved: Path, tmp_path: Path) -> None:
    """The most memory a run ever held, in MiB, for 1,000 lines and for 10,000."""
    most = []
    for count in (1_000, 10_000):
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
    assert numbers_in(messages.splitlines()[-1]) == [2]
    rows = run_here("translate", saved, tmp_path / "in", "--skip-refused", "--json", "--output", tmp_path / "out")
    assert rows.returncode == 3
    errors = [json.loads(line).get("error", "")[:12] for line in (tmp_path / "out").read_text().splitlines()]
    assert errors == ["", "'X' at posit", "", "is not UTF-8", ""]
    assert run_here("translate", saved, "--skip-refused", stdin=b"abc\n").returncode == 0
    streamed = run_here("translate", saved, "--skip-refused", "--stream", stdin=b"X\nabc\n")
    assert (streamed.returncode, streamed.stdout[:1]) == (3, b"\n")


def test_named_pipes_are_read_and_written(saved: Path, tmp_path: Path) -> None:
    for name in ("in", "out"):
        os.mkfifo(tmp_path / name)
    with ThreadPoolExecutor() as pool:
        pool.submit((tmp_path / "in").write_text, "abc\n\n")
        read = pool.submit((tmp_path / "out").read_bytes)
        result = run_here("translate", saved, tmp_path / "in", "--output", tmp_path / "out")
        assert result.returncode == 0, result.stderr.decode()
        assert read.result().count(b"\n") == 2
    assert b"waiting for" in result.stderr
    assert (tmp_path / "out").is_fifo()
    assert "a device" in refusal("translate", saved, "--output", tmp_path / "out", "--resume")


@pytest.mark.parametrize(
    ("argument", "is_text"),
    [
        ("1845-01-05", True), ("A dog.", True), ("Mr. Smith", True), ("and/or we go", True), ("Hi!", True),
        ("-", False), ("news.en", False), ("data/news", False), ("a.txt.gz", False), (".", False),
    ],
)  # fmt: skip
def test_what_is_no_file_and_looks_like_none_is_a_text(argument: str, is_text: bool) -> None:
    assert is_typed_text(argument) == is_text


def test_a_text_that_is_no_file_is_quoted(saved: Path) -> None:
    for text in ("", "abc"):
        message = run_here("translate", saved, text).stderr.decode()
        assert f"'{text}'" in message.splitlines()[0]
