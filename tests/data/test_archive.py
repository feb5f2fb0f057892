"""Archives from strangers: too large, broken or encrypted ones are refused before they do harm."""

import io
import tracemalloc
import zipfile

import pytest

from allyouneed.data import archive
from allyouneed.data.archive import Archive
from allyouneed.errors import DocumentError
from archives import packed, unpacked


def test_the_other_parts_stay_as_they_are() -> None:
    data = packed({"b": "one", "a": b"\x00" * 99, "c": "three"})
    assert Archive(data).replaced({}) == data
    result = Archive(data).replaced({"c": b"new"})
    assert list(unpacked(result).items()) == [("b", b"one"), ("a", b"\x00" * 99), ("c", b"new")]


def test_parts_may_be_replaced_again_and_again() -> None:
    opened = Archive(packed({"a": "one"}))
    assert opened.replaced({"a": b"two"}) == opened.replaced({"a": b"two"})
    assert opened.read("a") == b"one"


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = packed({"a": bytes(archive.ALWAYS_ALLOWED + 1)})
    assert len(bomb) < 20_000
    with pytest.raises(DocumentError, match="2 MiB"):
        Archive(bomb)


def lying(data: bytes, size: int) -> bytes:
    """Make an archive of one part of `size` bytes say that the part has 10."""
    stated = size.to_bytes(4, "little")
    assert data.count(stated) == 2
    return data.replace(stated, (10).to_bytes(4, "little"))


def test_a_part_larger_than_it_says_is_refused() -> None:
    data = lying(packed({"a": b"x" * 2**26}), 2**26)
    assert len(data) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(DocumentError, match="is damaged: a: "):
            Archive(data).read("a")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_cannot_be_unpacked_in_pieces_is_refused(method: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as file:
        file.writestr("a", "text")
    with pytest.raises(DocumentError, match="compressed"):
        Archive(data.getvalue())


def test_very_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_PARTS", 2)
    with pytest.raises(DocumentError, match="3 parts; .* 2 "):
        Archive(packed({"a": "", "b": "", "c": ""}))


def test_two_parts_of_one_name_are_refused() -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as file:
        file.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("a", "2")
    with pytest.raises(DocumentError, match="two parts"):
        Archive(output.getvalue())


WHOLE = packed({"a": "text " * 100})
ENCRYPTED = bytearray(WHOLE)
for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
    ENCRYPTED[WHOLE.index(signature) + offset] |= 1


@pytest.mark.parametrize("data", [b"", b"no archive", WHOLE[:-30], WHOLE[:20], WHOLE[20:], bytes(ENCRYPTED)])
def test_what_is_no_whole_archive_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="archive|damaged"):
        Archive(data).read("a")


def test_a_missing_part_is_named() -> None:
    with pytest.raises(DocumentError, match="word/document.xml"):
        Archive(WHOLE).read("word/document.xml")


def test_a_part_of_too_many_tags_is_refused_before_it_is_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.data.safe_xml.MAX_XML_TAGS", 4)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as written:
        written.writestr("few.xml", "<a><b/><b/></a>")
        written.writestr("many.xml", "<a><b/><b/><b/></a>")
    archive = Archive(data.getvalue())
    assert len(archive.read_xml("few.xml")) == 2
    with pytest.raises(DocumentError, match=r"5 tags in many\.xml; .* 4"):
        archive.read_xml("many.xml")
