"""The files of checkpoints: nothing in them is run, and a size is believed only if the file has it."""

import io
import os
import pickle
import tracemalloc
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from allyouneed.apps.convert import checkpoint_files
from allyouneed.apps.convert.checkpoint_files import (
    as_float32,
    read_json_table,
    read_limited,
    read_npz,
    read_pickle_safely,
    read_settings,
    read_tensor_file,
    read_vocabulary,
    stored_bytes,
)
from allyouneed.errors import CheckpointError


class Command:
    """A pickle that would make a folder when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_state_dict_of_pytorch_is_read(tmp_path: Path) -> None:
    state = {"a": torch.randn(2, 3), "b": torch.nn.Parameter(torch.randn(2).half()), "c": torch.arange(3)}
    torch.save(state, tmp_path / "model.bin")
    read = read_tensor_file(tmp_path / "model.bin")
    for name, tensor in state.items():
        assert torch.equal(read[name], tensor)


def test_code_in_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    torch.save({"a": Command(tmp_path / "made")}, tmp_path / "model.bin")
    with pytest.raises(CheckpointError, match=r"'\w+ mkdir'"):
        read_tensor_file(tmp_path / "model.bin")
    assert not (tmp_path / "made").exists()


def test_a_pickle_that_allocates_is_refused(tmp_path: Path) -> None:
    class Large:
        def __reduce__(self) -> tuple[Any, ...]:
            return bytearray, (10**15,)

    torch.save({"a": Large()}, tmp_path / "model.bin")
    with pytest.raises(CheckpointError, match="bytearray"):
        read_tensor_file(tmp_path / "model.bin")


def test_a_bare_pickle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(pickle.dumps(Command(tmp_path / "made")))
    with pytest.raises(CheckpointError, match="an archive"):
        read_tensor_file(tmp_path / "model.bin")
    assert not (tmp_path / "made").exists()


def twice(inner: Any, levels: int, kind: type = list) -> Any:
    """Nest a value that holds the same value twice, and so on, many levels deep."""
    for _ in range(levels):
        inner = kind([inner, inner])
    return inner


def in_itself() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def deep(levels: int) -> list[Any]:
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (twice("a", 40), "1,048,576 values"),
        (OrderedDict(a=[{"b": twice([], 40)}]), "1,048,576 values"),
        (deep(200), "or 100 levels"),
        (in_itself(), "cycle"),
    ],
)
def test_what_would_take_for_ever_to_print_is_refused(tmp_path: Path, value: Any, message: str) -> None:
    torch.save(value, tmp_path / "model.bin")
    with pytest.raises(CheckpointError, match=message):
        read_pickle_safely(tmp_path / "model.bin")


def test_a_key_that_would_take_for_ever_to_look_up_is_refused(tmp_path: Path) -> None:
    """Its hash would be computed for each of the 2**40 values: the pickle is put together by hand."""
    tuples = b"".join(bytes([*b"h", i, *b"h", i, *b"\x86q", i + 1]) for i in range(40))
    raw = b"\x80\x02X\x01\x00\x00\x00aq\x00" + tuples + b"}h\x28K\x01s."
    write_archive(tmp_path / "model.bin", raw)
    with pytest.raises(CheckpointError, match="1,048,576 values"):
        read_pickle_safely(tmp_path / "model.bin")


MANY = 2**17


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"]" * MANY + b"a" * (MANY - 1), "steps"),
        (b"(" * MANY + b"t" * MANY, "steps"),
        (b"](" + b"N" * MANY + b"e", "steps"),
        (b"](" + b"]" * 2**13 + b"e", "lists and"),
        (b"](" + b"N\x85" * 2**13 + b"e", "lists and"),
    ],
    ids=["deep lists", "deep marks", "a long list", "many lists", "many tuples"],
)
def test_a_pickle_of_many_parts_is_refused_before_they_take_memory(
    tmp_path: Path, pickled: bytes, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_files, "MOST_STEPS", 2**16)  # a sixteenth, as of all other numbers here
    monkeypatch.setattr(checkpoint_files, "MOST_CONTAINERS", 2**12)
    write_archive(tmp_path / "model.bin", b"\x80\x02" + pickled + b".")
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=f"[0-9,]+ {message}"):
        read_pickle_safely(tmp_path / "model.bin")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


def test_what_is_used_again_a_few_times_is_read(tmp_path: Path) -> None:
    betas = (0.9, 0.98)
    value = {
        "groups": [{"betas": betas} for _ in range(300)],
        "args": twice("b", 10),
        "empty": [],
    }
    torch.save(value, tmp_path / "model.bin")
    assert read_pickle_safely(tmp_path / "model.bin") == value


@pytest.mark.parametrize(
    ("pickled", "others"),
    [
        (b"\x80\x02}X\x01\x00\x00\x00aK\x01K\x02\x81s.", []),  # makes a new object of class 1
        (b"\x80\x02}.", ["constants.pkl"]),  # as in an archive of TorchScript
    ],
)
def test_a_refusal_does_not_repeat_the_advice_to_load_a_file_unsafely(
    tmp_path: Path, pickled: bytes, others: list[str]
) -> None:
    """PyTorch's message on a file that is not safe proposes `weights_only=False`, which would run it."""
    write_archive(tmp_path / "model.bin", pickled, *others)
    with pytest.raises(CheckpointError) as refused:
        read_pickle_safely(tmp_path / "model.bin")
    assert "tensors" in str(refused.value)
    assert "weights_only" not in str(refused.value)


@pytest.mark.parametrize("name", ["model.safetensors", "model.bin"])
def test_bytes_of_a_file_are_counted_once(tmp_path: Path, name: str) -> None:
    """Those of a stride of 0, of two tensors in one storage, and of two storages that share bytes of the file."""
    save = save_file if name.endswith("safetensors") else torch.save
    save({"a": torch.ones(3, 5), "b": torch.ones(7)}, tmp_path / name)
    assert 4 * (3 * 5 + 7) <= stored_bytes(read_tensor_file(tmp_path / name).values()) < 200
    ones = torch.ones(10)
    assert stored_bytes([ones, ones[2:4], ones.view(5, 2), torch.ones(1).expand(10**9)]) == 44


def write_archive(path: Path, pickled: bytes, *others: str) -> None:
    """Write an archive of PyTorch with this pickle and no tensor, and with other pickles of nothing."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name in others:
            archive.writestr(f"archive/{name}", b"\x80\x02}.")
        archive.writestr("archive/version", "3\n")


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10_000_000))
    with pytest.raises(CheckpointError, match="is compressed"):
        read_tensor_file(tmp_path / "model.bin")


@pytest.mark.parametrize("name", ["model.safetensors", "model.bin"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(os.urandom(1000))
    with pytest.raises(CheckpointError, match=name):
        read_tensor_file(tmp_path / name)


@pytest.mark.parametrize("name", ["model.safetensors", "model.bin"])
def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(CheckpointError, match="a pipe"):
        read_tensor_file(tmp_path / name)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="a pipe"):
        read_tensor_file(tmp_path / name)


def test_a_tensor_that_claims_more_than_its_file_holds_takes_no_memory() -> None:
    huge = torch.zeros(1).expand(2**40)
    with pytest.raises(CheckpointError, match=r"\(2,\); got \(1099511627776,\)"):
        as_float32("huge", huge, (2,))


def test_whole_numbers_are_no_weights() -> None:
    with pytest.raises(CheckpointError, match="with a fraction"):
        as_float32("a", torch.arange(2), (2,))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(11))
    assert len(read_limited(tmp_path / "a", 11)) == 11
    with pytest.raises(CheckpointError, match="10 bytes"):
        read_limited(tmp_path / "a", 10)
    with pytest.raises(CheckpointError, match="No such"):
        read_limited(tmp_path / "b", 10)


def test_json_must_be_an_object(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(CheckpointError, match="JSON object"):
        read_json_table(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(CheckpointError, match="is not JSON"):
        read_json_table(tmp_path / "a.json")


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
    with pytest.raises(CheckpointError, match="type object"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", ["(5,)", "(-4,)", "(10**15,)", "(2000000000, 2000000000)", "(1e9,)", "x"])
def test_a_header_that_claims_another_size_takes_no_memory(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)
    with pytest.raises(CheckpointError, match=r"\.npz"):
        read_npz(write(tmp_path / "a.npz", ("a.npy", content)))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x03\x00\x00\x00", b"PK" * 50])
def test_what_is_no_array_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"\.npz"):
        read_npz(write(tmp_path / "a.npz", ("a.npy", content)))


def test_a_compressed_npz_is_refused(tmp_path: Path) -> None:
    bomb = npy(np.zeros(10**6, np.float32))
    with pytest.raises(CheckpointError, match="compressed"):
        read_npz(write(tmp_path / "a.npz", ("a.npy", bomb), compression=zipfile.ZIP_DEFLATED))


def test_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        write(tmp_path / "a.npz", ("a.npy", npy(np.zeros(1))), ("a.npy", npy(np.zeros(1))))
    with pytest.raises(CheckpointError, match="two members"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("count", [0, 1, 3, 100, 400])
def test_a_truncated_archive_is_refused(tmp_path: Path, count: int) -> None:
    content = write(tmp_path / "a.npz", ("a.npy", npy(np.zeros(100, np.float32)))).read_bytes()
    (tmp_path / "a.npz").write_bytes(content[:count])
    with pytest.raises(CheckpointError, match=r"\.npz"):
        read_npz(tmp_path / "a.npz")


def test_settings_are_plain_values_and_lists() -> None:
    assert read_settings(b"a: 1\nb: x\nc:\n  - 2\nd: false\n", "x") == {"a": 1, "b": "x", "c": [2], "d": False}


@pytest.mark.parametrize("content", [b"[1]", b"a: [", b"\xff", b"a: *b", b"!!python/name:os.system x: 1"])
def test_other_settings_are_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"\bx\b"):
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
