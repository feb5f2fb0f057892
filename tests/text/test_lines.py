import bz2
import gzip
import lzma
import os
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backports import zstd

from allyouneed.data.readers import open_pairs, pair_lines
from allyouneed.errors import DataError
from allyouneed.text.lines import LONGEST_LINE, bounded_lines, count_lines, opened, read_lines

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress,
}  # fmt: skip


@pytest.mark.parametrize("ending", [*PACK, ".GZ"])
def test_archives_are_read_and_those_cut_short_are_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"text{ending}"
    path.write_bytes(PACK[ending.lower()](b"\xef\xbb\xbfone\r\ntwo\n"))
    assert read_lines(path) == ["one", "two"]
    assert count_lines(path) == 2
    path.write_bytes(PACK[ending.lower()](b"line\n" * 10_000)[:-5])
    with pytest.raises(DataError, match=f"text{ending}"):
        read_lines(path)


@pytest.mark.parametrize("ending", ["", *PACK])
def test_a_line_that_no_sentence_is_gets_refused_by_number_in_little_memory(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"text{ending}"
    pack = PACK.get(ending, bytes)
    path.write_bytes(pack(b"one\n" + b"a" * LONGEST_LINE + b"\n"))
    assert [len(line) for line in read_lines(path)] == [3, LONGEST_LINE]
    path.write_bytes(pack(b"one\n" + bytes(50 * LONGEST_LINE) + b"\ntwo\n"))
    tracemalloc.start()
    with pytest.raises(DataError, match="line 2 .*1,048,576 bytes"):
        read_lines(path)
    with opened(path) as stream:
        assert list(bounded_lines(stream, path)) == [b"one\n", None, b"two\n"]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 * LONGEST_LINE


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.csv", "pairs.jsonl", "pairs.po", "pairs.tsv.gz"])
@pytest.mark.parametrize("lines", [2, 100_000])
def test_lines_that_end_in_a_carriage_return_alone_are_refused(tmp_path: Path, name: str, lines: int) -> None:
    content = b"a dog\tun cane\r" * lines
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    message = f"{name} has .*: tr .* < .*{name} > FILE"
    with pytest.raises(DataError, match=message):
        list(open_pairs(str(tmp_path / name)))
    (tmp_path / "a.en").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.en .*carriage return"):
        list(open_pairs((str(tmp_path / "a.en"), str(tmp_path / "a.en"))))


def test_a_carriage_return_within_or_behind_a_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"a\rb\tc\nd\te\r\n")
    assert read_lines(tmp_path / "a.tsv") == ["a\rb\tc", "d\te"]
    (tmp_path / "a.tsv").write_bytes(b"a\tb\r")
    assert read_lines(tmp_path / "a.tsv") == ["a\tb"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_and_not_read_as_other_letters(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("\ndog\tсобака\ncat\tкошка\n".encode(encoding))
    with pytest.raises(DataError, match=r"text\.txt .*UTF-16"):
        list(open_pairs("text.txt", folder=str(tmp_path)))


def test_what_can_be_read_only_once_is_no_corpus(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pairs.tsv")
    (tmp_path / "text").write_text("a\n")
    for where in ("pairs.tsv", ("text", "pairs.tsv")):
        with pytest.raises(DataError, match=r"pairs\.tsv"):
            open_pairs(where, folder=str(tmp_path))
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(DataError, match=r"folder\.tsv"):
        open_pairs("folder.tsv", folder=str(tmp_path))


def test_two_pipes_are_read_side_by_side(tmp_path: Path) -> None:
    sides = tmp_path / "source", tmp_path / "target"
    for side in sides:
        os.mkfifo(side)
    with ThreadPoolExecutor() as pool:
        for side in sides:
            pool.submit(side.write_text, f"{side.name}\n" * 50_000)
        assert pair_lines(*sides) == [("source", "target")] * 50_000
