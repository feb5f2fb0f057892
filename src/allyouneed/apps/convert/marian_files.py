"""The files of Marian: arrays in a .npz, settings and vocabularies in YAML. They may come from strangers."""

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CheckpointError, MissingExtraError
from .checkpoint_files import LARGEST_JSON, read_limited

LARGEST_SETTINGS = 2**16  # bytes of YAML; Marian writes some 5,000
MOST_LEVELS = 4
CONFIG = "special:model.yml"  # the name of the array that holds the settings of the model
_ENTRY = re.compile(r"(?P<key>.*):\s*(?P<id>\d{1,9})\s*")

NPZArray = np.ndarray[Any, np.dtype[Any]]


def read_npz(path: Path) -> dict[str, NPZArray]:
    """The arrays of a .npz. Refuses what is compressed or holds more than numbers, before memory is taken."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("it is compressed; Marian's own files are not")
            if sum(member.file_size for member in members) > path.stat().st_size:
                raise ValueError("its members are larger than the file")
            names = [member.filename.removesuffix(".npy") for member in members]
            if len(set(names)) != len(names):
                raise ValueError("it has two members of one name")
            return {name: _array(archive.read(member)) for name, member in zip(names, members, strict=True)}
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise CheckpointError(f"{path} is no .npz that can be read: {error}") from error


def read_settings(content: bytes, name: str) -> dict[str, Any]:
    """The settings of some YAML: a table of plain values and lists. Refuses aliases, objects and long files."""
    yaml = _yaml()
    if len(content) > LARGEST_SETTINGS:
        raise CheckpointError(f"{name} has more than {LARGEST_SETTINGS:,} bytes, which no settings need")
    try:
        depth = 0
        for event in yaml.parse(content, Loader=yaml.SafeLoader):  # one by one, so that deep nesting is not read whole
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MOST_LEVELS:
                raise CheckpointError(f"{name} has aliases or deep nesting, as no settings of a checkpoint have")
        table = yaml.load(content, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{name} is no YAML that can be read: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(table, dict):
        raise CheckpointError(f"{name} must hold a table of settings")
    return table


def read_vocabulary(path: Path) -> dict[str, int]:
    """The ids of a vocabulary in YAML, a token and its id on a line, or on two (`? token` and `: id`)."""
    try:
        text = read_limited(path, LARGEST_JSON).decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not UTF-8") from error
    ids: dict[str, int] = {}
    for line in _joined_lines(text):
        match = _ENTRY.fullmatch(line)
        if match is None:
            raise CheckpointError(f"{path} must have a token and its id on each line; got {line!r:.60}")
        ids[_scalar(match["key"])] = int(match["id"])
    return ids


def _joined_lines(text: str) -> Iterator[str]:
    """The lines of entries; a key of its own line (`? key`) stands before its value (`: value`)."""
    pending = ""
    for line in re.split(r"\r?\n", text):
        if line.startswith("? "):
            pending = line[2:]
        elif line.strip() and line not in ("---", "...") and not line.startswith("#"):
            yield pending + line
            pending = ""


def _scalar(text: str) -> str:
    """The string that a YAML scalar means, which may be quoted."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        if "\\" not in text:
            return text[1:-1]
        yaml = _yaml()
        try:
            return str(yaml.load(text, Loader=yaml.BaseLoader))
        except (yaml.YAMLError, ValueError) as error:
            raise CheckpointError(f"a token of the vocabulary is no YAML: {text!r:.60}") from error
    return text


def _array(content: bytes) -> NPZArray:
    """The array of a .npy. Its size is compared with that of the file before memory is taken."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array has version {version} of the format; known are 1.0 and 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.kind not in "fiu" or dtype.hasobject:
        raise ValueError(f"an array has the type {dtype}, which is no number")
    count = 1
    for size in shape:
        count *= size
    if min(shape, default=1) < 0 or count * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"an array of shape {shape} does not have the size of its file")
    flat = np.frombuffer(content, dtype, count, file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("reading the YAML of a checkpoint", "import") from error
    return yaml
