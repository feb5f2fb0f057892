"""Arrays, settings and vocabularies of Marian, from friends and from strangers."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allyouneed.apps.convert.marian_files import read_npz, read_settings, read_vocabulary
from allyouneed.errors import CheckpointError


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write(path: Path, *members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1.5], np.float16),
        "c": np.asfortranarray(np.eye(3)),
        "special:x": np.frombuffer(b"abc", np.int8), "d": np.float32(2.5),
    }  # fmt: skip
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    read = read_npz(tmp_path / "a.npz")
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.array([print], dtype=object))
    with pytest.raises(CheckpointError, match="has the type object, which is no number"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", ["(5,)", "(-4,)", "(10**15,)", "(2000000000, 2000000000)", "(1e9,)", "x"])
def test_a_header_that_claims_another_size_takes_no_memory(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)
    with pytest.raises(CheckpointError, match="is no .npz that can be read"):
        read_npz(write(tmp_path / "a.npz", ("a.npy", content)))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x03\x00\x00\x00", b"PK" * 50])
def test_what_is_no_array_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CheckpointError, match="is no .npz that can be read"):
        read_npz(write(tmp_path / "a.npz", ("a.npy", content)))


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    bomb = npy(np.zeros(10**6, np.float32))
    with pytest.raises(CheckpointError, match="it is compressed"):
        read_npz(write(tmp_path / "a.npz", ("a.npy", bomb), compression=zipfile.ZIP_DEFLATED))


def test_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        write(tmp_path / "a.npz", ("a.npy", npy(np.zeros(1))), ("a.npy", npy(np.zeros(1))))
    with pytest.raises(CheckpointError, match="two members of one name"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("count", [0, 1, 3, 100, 400])
def test_a_truncated_archive_is_refused(tmp_path: Path, count: int) -> None:
    content = write(tmp_path / "a.npz", ("a.npy", npy(np.zeros(100, np.float32)))).read_bytes()
    (tmp_path / "a.npz").write_bytes(content[:count])
    with pytest.raises(CheckpointError, match="is no .npz that can be read"):
        read_npz(tmp_path / "a.npz")


def test_settings_are_plain_values_and_lists() -> None:
    assert read_settings(b"a: 1\nb: x\nc:\n  - 2\nd: false\n", "x") == {"a": 1, "b": "x", "c": [2], "d": False}


@pytest.mark.parametrize("content", [b"[1]", b"a: [", b"\xff", b"a: *b", b"!!python/name:os.system x: 1"])
def test_other_settings_are_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="x (is no YAML|must hold|has aliases)"):
        read_settings(content, "x")


def test_a_vocabulary_has_quoted_and_plain_tokens(tmp_path: Path) -> None:
    (tmp_path / "v.yml").write_text(
        '---\n"</s>": 0\n<unk>: 1\n\'it\'\'s\': 2\n"\\"": 3\n"\\xe9": 4\n":": 5\n? ▁a\n: 6\n'
    )
    expected = ["</s>", "<unk>", "it's", '"', "é", ":", "▁a"]
    assert read_vocabulary(tmp_path / "v.yml") == {token: i for i, token in enumerate(expected)}


@pytest.mark.parametrize("content", ["a\n", "a: b\n", "a: 1: x\n", '"\\x": 3\n', "a: -1\n", "a: 9999999999\n"])
def test_other_vocabularies_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "v.yml").write_text(content)
    with pytest.raises(CheckpointError, match="token"):
        read_vocabulary(tmp_path / "v.yml")
