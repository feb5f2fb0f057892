import gzip
import shlex
from pathlib import Path

import pytest

from allyouneed.data.clean import skip_malformed
from allyouneed.data.pairs import Pair
from allyouneed.data.readers import open_pairs, pair_lines, read_pairs
from allyouneed.data.report import RuleCount
from allyouneed.errors import DataError
from allyouneed.text.lines import read_lines


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
    with pytest.raises(DataError, match="line 2 .*0xef .*3"):
        read_lines(path)


def test_files_that_are_not_there_or_not_whole_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing"):
        read_lines(tmp_path / "nothing")
    with pytest.raises(DataError, match="a directory"):
        read_lines(tmp_path)
    half = tmp_path / "half.gz"
    half.write_bytes(gzip.compress(b"line\n" * 1000)[:-12])
    with pytest.raises(DataError, match="gzip file"):
        read_lines(half)
    half.write_bytes(b"no gzip")
    with pytest.raises(DataError, match="gzip file"):
        read_lines(half)


def test_line_n_pairs_with_line_n(tmp_path: Path) -> None:
    write(tmp_path / "a", b"one\ntwo\n")
    write(tmp_path / "b.gz", b"uno\ndue\n")
    assert read_pairs(("a", "b.gz"), folder=str(tmp_path)) == [Pair("one", "uno"), Pair("two", "due")]


@pytest.mark.parametrize("damaged", ["a", "b"])
def test_of_aligned_files_the_one_with_invalid_utf8_is_named(tmp_path: Path, damaged: str) -> None:
    for name in "ab":
        write(tmp_path / name, b"fine\nna\xefve\n" if name == damaged else b"fine\nfine\n")
    with pytest.raises(DataError, match=rf"line 2 of \S+/{damaged} "):
        read_pairs(("a", "b"), folder=str(tmp_path))


def test_files_of_different_length_are_refused(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", b"1\n2\n3\n"), write(tmp_path / "b", b"1\n2\n")
    with pytest.raises(DataError, match="a has 3 .*b has 2 "):
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


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".po.gz"])
def test_two_files_that_each_hold_pairs_are_not_two_sides(tmp_path: Path, ending: str) -> None:
    files = (str(write(tmp_path / f"a{ending}", b"a\tb\n")), str(write(tmp_path / "B.TSV", b"c\td\n")))
    with pytest.raises(DataError, match=rf"a{ending} .*B.TSV .*\[\[data.corpus\]\]"):
        read_pairs(files)


def test_endings_may_be_in_capitals(tmp_path: Path) -> None:
    assert read_pairs(str(write(tmp_path / "A.TSV.GZ", gzip.compress(b"a\tb\n")))) == [Pair("a", "b")]


def test_dates_are_made_on_the_spot() -> None:
    assert len(read_pairs("dates:valid", limit=7, seed=2)) == 7


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(DataError, match="'dates:all'.*dates:train, dates:valid, dates:test"):
        read_pairs("dates:all")


def test_files_without_a_line_are_refused_as_empty(tmp_path: Path) -> None:
    full, empty, archive = tmp_path / "full.tsv", tmp_path / "empty.tsv", tmp_path / "empty.gz"
    write(full, b"a\tb\n")
    write(empty, b"")
    write(archive, b"")
    with pytest.raises(DataError, match="full.tsv .*1 lines.*empty.gz"):
        pair_lines(full, archive)
    with pytest.raises(DataError, match="empty.gz .*full.tsv .*1 lines"):
        read_pairs((str(archive), str(full)))
    with pytest.raises(DataError, match=r"empty.tsv \+ .*empty.gz"):
        pair_lines(empty, archive)
    with pytest.raises(DataError, match=r"^\S+/empty.tsv"):
        pair_lines(empty, empty)
    with pytest.raises(DataError, match="empty.tsv"):
        read_pairs(str(empty))


def test_an_archive_of_more_lines_than_memory_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.text.lines.MAX_IN_MEMORY", 1 << 20)
    lines, pairs = tmp_path / "lines.gz", tmp_path / "pairs.jsonl.gz"
    with gzip.open(lines, "wb") as file:
        file.write(b"\n" * 20_000)
    with gzip.open(pairs, "wb") as file:
        file.write(b'{"a": "", "b": ""}\n' * 20_000)
    for read in (lambda: read_lines(lines), lambda: pair_lines(lines, lines), lambda: read_pairs(str(pairs))):
        with pytest.raises(DataError, match="gz .*1 MiB .*line 10,486"):
            read()


def test_aligned_files_of_windows_are_refused_with_the_command_that_converts_them(tmp_path: Path) -> None:
    (tmp_path / "my text.it").write_bytes("caffè\n".encode("cp1252"))
    (tmp_path / "text.en").write_text("coffee\n")
    rows = open_pairs(("my text.it", "text.en"), folder=str(tmp_path))
    with pytest.raises(DataError, match="not UTF-8: byte 0xe8") as refused:
        list(skip_malformed(rows, RuleCount(), name="pairs", max_malformed=0.01))
    path = shlex.quote(str(tmp_path / "my text.it"))
    assert str(refused.value).endswith(f"iconv -f WINDOWS-1252 -t UTF-8 {path} > 'utf8-my text.it'")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.docx", "document, .*spreadsheet"),
        ("a.pdf", "document, .*spreadsheet"),
        ("a.zip", "archive .*files"),
    ],
)
def test_other_files_are_refused_with_what_to_do(name: str, remedy: str) -> None:
    with pytest.raises(DataError, match=f"{name} .*{remedy}"):
        open_pairs(name)
