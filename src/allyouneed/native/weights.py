"""Where the weights of a model are in memory: in a mapped file of safetensors, or in the tensors of a model."""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from ctypes import addressof, c_char
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ConfigError

if TYPE_CHECKING:
    from ..nn import Transformer


class Weights(Protocol):
    """The weights of a model in memory, float32 and contiguous; they stay where they are as long as this object lives."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    def address(self, name: str) -> int:
        """Return where a weight begins."""
        ...


class FileWeights:
    """The weights of a file of safetensors, mapped and not read: eight bytes of length, a header in JSON, then numbers.

    Refuses a header that does not describe the file.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            # A private mapping that may be written, as ctypes asks for; nobody writes.
            self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        length = int.from_bytes(self._mapped[:8], "little")
        start = 8 + length
        if start > len(self._mapped) or start % 4:
            raise ConfigError(f"{path} has a header of {length} bytes, but {len(self._mapped)} in all")
        header = _parse(path, self._mapped[8:start])
        self.shapes = {name: tuple(part["shape"]) for name, part in header.items()}
        self._starts = {}
        for name, part in header.items():
            begin, end = part["data_offsets"]
            if part["dtype"] != "F32":
                raise ConfigError(f"{name} must be float32 (F32); got {part['dtype']}; convert it and save again")
            if (
                not 0 <= begin <= end <= len(self._mapped) - start
                or end - begin != 4 * prod(part["shape"])
                or begin % 4
            ):
                raise ConfigError(f"{name} has shape {part['shape']}, but bytes {begin} to {end} of {path}")
            self._starts[name] = start + begin
        self._address = addressof(c_char.from_buffer(self._mapped))

    def address(self, name: str) -> int:
        """As in `Weights`."""
        return self._address + self._starts[name]


def _parse(path: Path, header: bytes) -> dict[str, dict[str, Any]]:
    try:
        parts: dict[str, dict[str, Any]] = json.loads(header)
        parts.pop("__metadata__", None)
        for part in parts.values():
            numbers = [*part["shape"], *part["data_offsets"]]
            if len(part["data_offsets"]) != 2 or not all(type(number) is int and number >= 0 for number in numbers):
                raise ValueError("shapes and offsets must be whole numbers")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} has a header that is not one of safetensors: {error}") from error
    return parts


class ModelWeights:
    """A copy of the weights of a model, which may go on learning."""

    def __init__(self, model: Transformer) -> None:
        from ..nn.weights import weights

        self._tensors = {name: tensor.float().clone() for name, tensor in weights(model).items()}
        self.shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def address(self, name: str) -> int:
        """As in `Weights`."""
        return self._tensors[name].data_ptr()
