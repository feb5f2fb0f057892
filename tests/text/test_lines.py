import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

from allyouneed.errors import DataError
from allyouneed.text.lines import count_lines, read_lines

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress,
}  # fmt: skip


@pytest.mark.parametrize("ending", PACK)
def test_archives_are_read_and_those_cut_short_are_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"text{ending}"
    path.write_bytes(PACK[ending](b"\xef\xbb\xbfone\r\ntwo\n"))
    assert read_lines(path) == ["one", "two"]
    assert count_lines(path) == 2
    path.write_bytes(PACK[ending](b"line\n" * 10_000)[:-5])
    with pytest.raises(DataError, match=f"text{ending} is no whole .* file"):
        read_lines(path)
