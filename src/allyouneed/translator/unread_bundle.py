"""A bundle without its model, for a process that translates without PyTorch."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..bundle import Bundle, not_its_weights, require_builder
from ..bundle_parts import WEIGHTS_FILE, read_parts
from ..config import ModelConfig
from ..errors import BundleError, ConfigError
from ..machine.checksums import Checksums
from ..machine.files import parse_json

if TYPE_CHECKING:
    from ..nn import Transformer

_NOT_MADE: Any = None


class UnreadBundle(Bundle):
    """A bundle that builds its model only if something asks for it.

    `load` reads and verifies the weights, and the first call of `weights()` returns them. The model is read from the
    folder later; a folder whose weights have changed by then is refused.
    """

    folder: Path
    weights_digest: str
    stored_config: ModelConfig
    stored_shapes: dict[str, tuple[int, ...]]
    stored_weights: dict[str, memoryview[Any]]

    @property
    def config(self) -> ModelConfig:
        """The sizes of the model."""
        return self.stored_config

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the weights; see `Bundle.shapes`."""
        return self.stored_shapes

    @cached_property
    def model(self) -> Transformer:
        """The model on the CPU, built when it is first used."""
        bundle = Bundle.load(self.folder)
        self._require_unchanged()
        return bundle.model

    def weights(self) -> dict[str, memoryview[Any]]:
        """Return the weights of the model if it has been built, otherwise those of the file."""
        if "model" in vars(self):
            return super().weights()
        stored: dict[str, memoryview[Any]] | None = vars(self).pop("stored_weights", None)
        if stored is None:  # they are large, so they were handed over to the first caller
            self._require_unchanged()
            stored = _read_weights(Checksums(self.folder))
        return stored

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder. Unpickling loads the bundle again."""
        return _load_again, (self.folder, self.weights_digest)

    def _require_unchanged(self) -> None:
        if Checksums(self.folder).digest(WEIGHTS_FILE) != self.weights_digest:
            raise BundleError(f"{self.folder} has been replaced since it was loaded; load it again")

    @classmethod
    def read(cls, checksums: Checksums, *_: Any) -> Self:
        """Read the folder that has these checksums, once. The other arguments of `Bundle.read` are ignored."""
        parts = read_parts(checksums)
        require_builder(parts, None)
        weights = _read_weights(checksums)
        bundle = cls(_NOT_MADE, **parts.fields())
        del vars(bundle)["model"]  # so that the property builds it
        vars(bundle).update(
            folder=checksums.folder,
            weights_digest=checksums.digest(WEIGHTS_FILE),
            stored_config=parts.config.model,
            stored_shapes={name: tensor.shape for name, tensor in weights.items()},
            stored_weights=weights,
        )
        return bundle


def _load_again(folder: Path, weights_digest: str) -> UnreadBundle:
    bundle = UnreadBundle.load(folder)
    if bundle.weights_digest != weights_digest:
        raise BundleError(f"{folder} has been replaced since it was loaded; load it again")
    return bundle


def _read_weights(checksums: Checksums) -> dict[str, memoryview[Any]]:
    content = checksums.read(WEIGHTS_FILE)
    try:
        return parse_tensors(content)
    except ConfigError as error:
        raise not_its_weights(checksums.folder, error) from error


def parse_tensors(content: bytes) -> dict[str, memoryview[Any]]:
    """Return the tensors in the content of a safetensors file, by name, without copying. Refuses types except float32.

    The format is eight bytes with the size of a header, the header in JSON, then the numbers.
    """
    size = int.from_bytes(content[:8], "little")
    try:
        header = parse_json(content[8 : 8 + size])
        parts = {name: part for name, part in header.items() if name != "__metadata__"}
        places = {name: (part["dtype"], part["shape"], *part["data_offsets"]) for name, part in parts.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"its header is damaged ({error!r:.80})") from error
    data = memoryview(content)[8 + size :]
    tensors: dict[str, memoryview[Any]] = {}
    for name, (dtype, shape, start, end) in places.items():
        if dtype != "F32":
            raise ConfigError(f"{name} must be float32 (F32); got {dtype}; convert it and save again")
        is_whole = all(type(number) is int and number > 0 for number in (*shape, end)) and type(start) is int
        if not is_whole or not 0 <= start <= end <= len(data) or end - start != 4 * math.prod(shape):
            raise ConfigError(f"{name} has the shape {shape}, but bytes {start} to {end} of {len(data)}")
        part = data[start:end]
        if (8 + size + start) % 4:
            part = memoryview(bytes(part))  # numbers are read in place, so they must be aligned
        tensors[name] = part.cast("f", tuple(shape))
    return tensors
