import gzip
from pathlib import Path

import pytest

from allyouneed.corpus.readers import Pair, read_lines, read_pairs
from allyouneed.errors import DataError


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
def test_lines_of_a_file(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "\ufeffA dog.\r\n\n  Ein Hund. \nlast".encode())
    assert read_lines(path) == ["A dog.", "", "Ein Hund.", "last"]


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "text", "one\u2028still one\x0bstill\x85one\ntwo\n".encode())
    assert len(read_lines(path)) == 2


def test_an_empty_file_has_no_line(tmp_path: Path) -> None:
    assert read_lines(write(tmp_path / "text", b"")) == []


def test_invalid_utf8_is_refused_by_line(tmp_path: Path) -> None:
    path = write(tmp_path / "text", b"fine\nna\xefve\n")
    with pytest.raises(DataError, match=r"text, line 2 is not UTF-8: byte 0xef at position 3"):
        read_lines(path)


def test_files_that_are_not_there_or_not_whole_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing does not exist"):
        read_lines(tmp_path / "nothing")
    with pytest.raises(DataError, match="could not be read: Is a directory"):
        read_lines(tmp_path)
    half = tmp_path / "half.gz"
    half.write_bytes(gzip.compress(b"line\n" * 1000)[:-12])
    with pytest.raises(DataError, match="no whole gzip file"):
        read_lines(half)
    half.write_bytes(b"no gzip")
    with pytest.raises(DataError, match="no whole gzip file"):
        read_lines(half)


def test_line_n_pairs_with_line_n(tmp_path: Path) -> None:
    write(tmp_path / "a", b"one\ntwo\n")
    write(tmp_path / "b.gz", b"uno\ndue\n")
    assert read_pairs(("a", "b.gz"), folder=str(tmp_path)) == [Pair("one", "uno"), Pair("two", "due")]


def test_files_of_different_length_are_refused(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", b"1\n2\n3\n"), write(tmp_path / "b", b"1\n2\n")
    with pytest.raises(DataError, match="a has 3 lines but .*b has 2; the two must pair line by line"):
        read_pairs((str(a), str(b)))


def test_a_limit_draws_by_seed_and_keeps_the_order(tmp_path: Path) -> None:
    lines = "".join(f"{i}\n" for i in range(100)).encode()
    where = (str(write(tmp_path / "a", lines)), str(write(tmp_path / "b", lines)))
    drawn = read_pairs(where, limit=10, seed=5)
    numbers = [int(pair.source) for pair in drawn]
    assert len(numbers) == 10
    assert numbers == sorted(numbers)
    assert drawn == read_pairs(where, limit=10, seed=5) != read_pairs(where, limit=10, seed=6)
    assert all(pair.source == pair.target for pair in drawn)
    assert len(read_pairs(where, limit=1000)) == 100


def test_dates_are_made_on_the_spot() -> None:
    assert len(read_pairs("dates:valid", limit=7, seed=2)) == 7


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(
        DataError, match="no pairs are known under 'dates:all'; .*reverse, sort.*dates:train, dates:valid, dates:test"
    ):
        read_pairs("dates:all")
