"""Read files of checkpoints, which may come from strangers: no code in them is run, and sizes are checked first."""

import io
import math
import pickletools
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ...errors import CheckpointError, refused, require_extra
from ...machine.files import parse_json, read_whole

LARGEST_TEXT = 2**26  # bytes; a vocabulary of 250,000 pieces has about 5 million
LARGEST_SETTINGS = 2**16  # bytes of YAML; Marian writes some 5,000
MOST_LEVELS_OF_SETTINGS = 4
LARGEST_PICKLE = 2**24  # bytes of a pickle that describes tensors; the tensors' numbers are stored outside it
MOST_STEPS, MOST_CONTAINERS = 2**20, 2**16  # in a pickle; a tensor takes some 30 steps and 5 lists, tables and tuples
MOST_PARTS, MOST_LEVELS = 2**20, 100  # of its lists, tables and tuples; a part that is used twice counts twice
_ENTRY = re.compile(r"(?P<key>.*):\s*(?P<id>\d{1,9})\s*")  # an entry of a vocabulary in YAML
_REMEDY = "if you trust it, save only its tensors, as docs/import.md shows"
_PICKLED = {  # the only names allowed in a pickle of tensors and settings
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    *(f"torch {kind}Storage" for kind in ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Byte", "Bool")),
}

NPZArray = np.ndarray[Any, np.dtype[Any]]


def read_limited(path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes. Refuses a missing file and a larger one."""
    with refused(CheckpointError, f"{path} cannot be read", OSError):
        content = read_whole(path, most + 1)
    if len(content) > most:
        raise CheckpointError(f"{path} has more than {most:,} bytes, which no file of this kind needs")
    return content


def read_json_table(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file. Refuses anything else."""
    try:
        table = parse_json(read_limited(path, LARGEST_TEXT))
    except ValueError as error:
        raise CheckpointError(f"{path} {error}") from error
    if not isinstance(table, dict):
        raise CheckpointError(f"{path} must hold a JSON object; got {type(table).__name__}")
    return table


def read_lines_of_text(path: Path) -> list[str]:
    """Read the lines of a UTF-8 text file, without an empty last line."""
    try:
        text = read_limited(path, LARGEST_TEXT).decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not UTF-8: byte {error.start + 1}") from error
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def choose_file(folder: Path, pattern: str, *preferred: str) -> Path:
    """Choose the first of the preferred files that a folder has, or else the only file that matches the pattern."""
    paths = sorted(folder.glob(pattern))
    named = [folder / name for name in preferred if folder / name in paths]
    if not named and len(paths) != 1:
        rename = f"; name the one to import {preferred[0]}" if preferred else ""
        raise CheckpointError(f"{folder} must have one {pattern}; it has {len(paths)}{rename}")
    return (named or paths)[0]


def read_tensor_file(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a .safetensors file, or of a state dict that PyTorch saved, on the CPU."""
    if path.suffix != ".safetensors":
        return require_tensors(read_pickle_safely(path), str(path))
    with refused(CheckpointError, f"{path} cannot be read", OSError, SafetensorError):
        read_whole(path, 0)  # refuses a pipe and a device
        return load_file(path)


def require_tensors(state: Any, what: str) -> dict[str, Tensor]:
    """Return a table of tensors by name. Refuses anything else."""
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(part, Tensor) for name, part in state.items()
    ):
        raise CheckpointError(f"{what} must hold a table of tensors")
    return dict(state)


def stored_bytes(tensors: Iterable[Tensor]) -> int:
    """Count the bytes in which tensors are stored. Bytes that tensors share, or a stride of 0 repeats, count once."""
    total, end = 0, 0
    for storage in sorted((tensor.untyped_storage() for tensor in tensors), key=lambda storage: storage.data_ptr()):
        begin = max(end, storage.data_ptr())
        end = max(end, storage.data_ptr() + storage.nbytes())
        total += end - begin
    return total


def read_pickle_safely(path: Path) -> Any:
    """Read a file that PyTorch saved: tensors, plain values and tables of these, on the CPU.

    The pickle may name only these types; this is checked before it is read with `weights_only`. Refuses everything
    else.
    """
    with refused(CheckpointError, f"{path} cannot be read", Exception):  # a damaged pickle may raise any exception
        read_whole(path, 0)  # refuses a pipe and a device
        _refuse_unsafe_pickle(path)
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except UnpicklingError as error:  # its own message explains how to load the file unsafely
            raise CheckpointError(f"{path} holds more than tensors and settings; {_REMEDY}") from error


def as_float32(name: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor in float32. First refuses a wrong shape, because a tensor may claim more than its file holds."""
    if tuple(tensor.shape) != shape:
        raise CheckpointError(f"{name} must have shape {shape}; got {tuple(tensor.shape)}")
    if not tensor.is_floating_point():
        raise CheckpointError(f"{name} must be numbers with a fraction; got {tensor.dtype}")
    return tensor.to(torch.float32)


def _refuse_unsafe_pickle(path: Path) -> None:
    """Refuse a file that is not an archive of PyTorch, is compressed, or whose pickle names more than tensors."""
    if not zipfile.is_zipfile(path):
        raise CheckpointError(f"{path} is not an archive of PyTorch 1.6 or later; save it again with a later version")
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
        for number, (code, argument, _) in enumerate(pickletools.genops(content)):
            if number == MOST_STEPS:
                raise CheckpointError(
                    f"{path} has a pickle of more than {MOST_STEPS:,} steps, as no file of tensors has"
                )
            if code.name in ("STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"):
                raise CheckpointError(f"{path} holds a pickle with {code.name}, as no file of tensors does")
            if code.name == "GLOBAL" and argument not in _PICKLED:
                raise CheckpointError(
                    f"{path} holds more than tensors and settings: its pickle names {argument!r:.80}; {_REMEDY}"
                )
        _refuse_growth(path, content)


def _refuse_growth(path: Path, content: bytes) -> None:
    """Refuse a pickle with many or deeply nested parts. A part that is used twice counts twice.

    A list that contains another list twice, 40 levels deep, takes little memory, but an eternity to compare or print.
    """
    # The parts of each list, table and tuple, by index; index 0 stands for any plain value.
    parts: list[list[int]] = [[]]
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
                if len(parts) == MOST_CONTAINERS:
                    raise CheckpointError(f"{path} has a pickle of more than {MOST_CONTAINERS:,} lists and tables")
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


def read_npz(path: Path) -> dict[str, NPZArray]:
    """Read the arrays of a .npz.

    Refuses compressed files, and content other than numbers, before memory is allocated.
    """
    # A damaged archive may raise any exception.
    with refused(CheckpointError, f"{path} is not a readable .npz", Exception), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed; Marian's own files are not")
        if sum(member.file_size for member in members) > path.stat().st_size:
            raise ValueError("its members are larger than the file")
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) != len(names):
            raise ValueError("it has two members of one name")
        return {name: _array(archive.read(member)) for name, member in zip(names, members, strict=True)}


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read the settings in a YAML file; see `read_settings`."""
    return read_settings(read_limited(path, LARGEST_SETTINGS), str(path))


def read_settings(content: bytes, name: str) -> dict[str, Any]:
    """Read YAML settings: a table of plain values and lists. Refuses aliases, objects and long content."""
    yaml = _yaml()
    if len(content) > LARGEST_SETTINGS:
        raise CheckpointError(f"{name} has more than {LARGEST_SETTINGS:,} bytes, which no settings need")
    with refused(CheckpointError, f"{name} is not readable YAML", yaml.YAMLError, ValueError, RecursionError):
        depth = 0
        # One at a time, so that deep nesting is never read as a whole.
        for event in yaml.parse(content, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MOST_LEVELS_OF_SETTINGS:
                raise CheckpointError(f"{name} has aliases or deep nesting, as no settings of a checkpoint have")
        table = yaml.load(content, Loader=yaml.SafeLoader)
    if not isinstance(table, dict):
        raise CheckpointError(f"{name} must hold a table of settings")
    return table


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read the ids of a YAML vocabulary. A token and its id are on one line, or on two (`? token` and `: id`)."""
    ids: dict[str, int] = {}
    for line in _joined_lines(path):
        match = _ENTRY.fullmatch(line)
        if match is None:
            raise CheckpointError(f"{path} must have a token and its id on each line; got {line!r:.60}")
        ids[_scalar(match["key"])] = int(match["id"])
    return ids


def _joined_lines(path: Path) -> Iterator[str]:
    """Yield the lines of entries. A key on its own line (`? key`) is joined with its value (`: value`)."""
    pending = ""
    for line in read_lines_of_text(path):
        if line.startswith("? "):
            pending = line[2:]
        elif line.strip() and line not in ("---", "...") and not line.startswith("#"):
            yield pending + line
            pending = ""


def _scalar(text: str) -> str:
    """Return the string that a YAML scalar stands for. The scalar may be quoted."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        if "\\" not in text:
            return text[1:-1]
        yaml = _yaml()
        with refused(
            CheckpointError, f"a token of the vocabulary is not YAML: {text!r:.60}", yaml.YAMLError, ValueError
        ):
            return str(yaml.load(text, Loader=yaml.BaseLoader))
    return text


def _array(content: bytes) -> NPZArray:
    """Read the array of a .npy. Its size is compared with the file's before memory is allocated."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array has version {version} of the format; known are 1.0 and 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.kind not in "fiu" or dtype.hasobject:
        raise ValueError(f"an array has the type {dtype}, which is not a number")
    count = math.prod(shape)
    if min(shape, default=1) < 0 or count * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"an array of shape {shape} does not have the size of its file")
    flat = np.frombuffer(content, dtype, count, file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def _yaml() -> Any:
    return require_extra("yaml", "reading the YAML of a checkpoint", "import")
