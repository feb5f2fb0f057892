"""The files of checkpoints, which may come from strangers: nothing in them is run, and sizes are checked before use."""

import argparse
import pickletools
import zipfile
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ...errors import CheckpointError
from ...files import parse_json, read_whole

LARGEST_JSON = 2**26  # bytes; a vocabulary of 250,000 pieces has about 5 million
LARGEST_PICKLE = 2**24  # bytes of a pickle that describes tensors; their numbers lie outside it
MOST_PARTS, MOST_LEVELS = (
    2**20,
    100,
)  # of the lists, tables and tuples of a pickle, one that is used twice counted twice
_REMEDY = "if you trust it, save its tensors alone, as docs/import.md shows"
_PICKLED = {  # what the pickle of tensors and settings names, and nothing else
    "argparse Namespace",
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    *(f"torch {kind}Storage" for kind in ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Byte", "Bool")),
}


def read_limited(path: Path, most: int) -> bytes:
    """The bytes of a file of at most `most` bytes. Refuses a missing and a larger one."""
    try:
        content = read_whole(path, most + 1)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > most:
        raise CheckpointError(f"{path} has more than {most:,} bytes, which no file of this kind needs")
    return content


def read_json_table(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Refuses anything else."""
    try:
        table = parse_json(read_limited(path, LARGEST_JSON))
    except ValueError as error:
        raise CheckpointError(f"{path} {error}") from error
    if not isinstance(table, dict):
        raise CheckpointError(f"{path} must hold a JSON object; got {type(table).__name__}")
    return table


def read_tensor_file(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file, or of a state dict that PyTorch saved, on the CPU."""
    if path.suffix != ".safetensors":
        return require_tensors(read_pickle_safely(path), str(path))
    try:
        read_whole(path, 0)  # refuses a pipe and a device
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error


def require_tensors(state: Any, what: str) -> dict[str, Tensor]:
    """A table of tensors by name. Refuses anything else."""
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(part, Tensor) for name, part in state.items()
    ):
        raise CheckpointError(f"{what} must hold a table of tensors")
    return dict(state)


def stored_bytes(tensors: Iterable[Tensor]) -> int:
    """The bytes in which tensors are stored; those that several of them have, or a stride of 0 repeats, count once."""
    total, end = 0, 0
    for storage in sorted((tensor.untyped_storage() for tensor in tensors), key=lambda storage: storage.data_ptr()):
        begin = max(end, storage.data_ptr())
        end = max(end, storage.data_ptr() + storage.nbytes())
        total += end - begin
    return total


def read_pickle_safely(path: Path) -> Any:
    """What PyTorch saved: tensors, plain values and tables of them, and namespaces of argparse, on the CPU.

    Of a pickle only the names of these are accepted, before it is read with `weights_only`. Refuses all others.
    """
    try:
        read_whole(path, 0)  # refuses a pipe and a device
        _refuse_unsafe_pickle(path)
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (
        OSError, RuntimeError, UnpicklingError, ValueError, EOFError, zipfile.BadZipFile, TypeError, KeyError,
        IndexError, AttributeError, AssertionError, RecursionError,
    ) as error:  # fmt: skip
        if "weights_only" in str(error):  # PyTorch's advice on how to load the file unsafely
            raise CheckpointError(f"{path} holds more than tensors and settings; {_REMEDY}") from error
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{path} cannot be read: {str(error).partition(chr(10))[0] or repr(error):.200}")


def as_float32(name: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A tensor of this shape in float32. The shape is compared first: a tensor may claim more than its file holds."""
    if tuple(tensor.shape) != shape:
        raise CheckpointError(f"{name} must have shape {shape}; got {tuple(tensor.shape)}")
    if not tensor.is_floating_point():
        raise CheckpointError(f"{name} must be numbers with a fraction; got {tensor.dtype}")
    return tensor.to(torch.float32)


def _refuse_unsafe_pickle(path: Path) -> None:
    """Refuse a file that is no archive of PyTorch, is compressed, or whose pickle names more than tensors."""
    if not zipfile.is_zipfile(path):
        raise CheckpointError(f"{path} is no archive of PyTorch 1.6 or later; save it again with a later version")
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise CheckpointError(f"{path} is compressed, as PyTorch's own files never are")
        pickles = [entry for entry in entries if entry.filename.endswith(".pkl")]  # TorchScript has others
        if [entry.filename.rpartition("/")[2] for entry in pickles] != ["data.pkl"]:
            raise CheckpointError(f"{path} must have one pickle, data.pkl; {_REMEDY}")
        if pickles[0].file_size > LARGEST_PICKLE:
            raise CheckpointError(f"{path} has a data.pkl of more than {LARGEST_PICKLE:,} bytes")
        content = archive.read(pickles[0])
        for code, argument, _ in pickletools.genops(content):
            if code.name in ("STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"):
                raise CheckpointError(f"{path} holds a pickle with {code.name}, as no file of tensors does")
            if code.name == "GLOBAL" and argument not in _PICKLED:
                raise CheckpointError(
                    f"{path} holds more than tensors and settings: its pickle names {argument!r:.80}; {_REMEDY}"
                )
        _refuse_growth(path, content)


def _refuse_growth(path: Path, content: bytes) -> None:
    """Refuse a pickle of many or deep parts, where one that is used again counts again.

    A list that holds another one twice, 40 levels deep, takes little memory, but for ever to compare or to print.
    """
    parts: list[list[int]] = [[]]  # what each list, table and tuple holds, by number; the first is any plain value
    stack, marks, memo = list[int](), list[int](), dict[Any, int]()
    for code, argument, _ in pickletools.genops(content):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif code.name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif code.name == "MARK":
            marks.append(len(stack))
        else:
            before = code.stack_before
            to_mark = pickletools.markobject in before
            begin = marks.pop() - before.index(pickletools.markobject) if to_mark else len(stack) - len(before)
            taken = stack[begin:]
            del stack[begin:]
            if code.name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "BUILD"):
                changed, *taken = taken
                parts[changed] += taken
                stack.append(changed)
            elif taken or code.name.startswith("EMPTY_"):
                parts.append(taken)
                stack.append(len(parts) - 1)
            elif code.stack_after:
                stack.append(0)
    sizes, levels = [1] * len(parts), [0] * len(parts)
    for number in TopologicalSorter(dict(enumerate(parts))).static_order():  # raises CycleError, which is a ValueError
        sizes[number] += sum(sizes[part] for part in parts[number])
        levels[number] = 1 + max((levels[part] for part in parts[number]), default=0)
    if max(sizes) > MOST_PARTS or max(levels) > MOST_LEVELS:
        raise CheckpointError(
            f"{path} has a pickle of more than {MOST_PARTS:,} values or {MOST_LEVELS} levels, one used twice counted "
            "twice, as no table of tensors has"
        )
