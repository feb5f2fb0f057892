"""Tensors on disk with a checksum, so that a damaged file is refused and never used."""

from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..errors import DataError
from ..files import read_whole, write_whole


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors and some text as one safetensors file, whole or not at all."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(path, save(tensors, metadata={**(metadata or {}), "checksum": str(_checksum(tensors))}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the text that `write_tensors` wrote. Refuses a file that is missing or damaged."""
    try:
        read_whole(path, 0)
        with safe_open(path, framework="pt") as file:
            tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} is missing or damaged: {error}; start another run with --output") from error
    if metadata.get("checksum") != str(_checksum(tensors)):
        raise DataError(f"{path} is damaged: its checksum does not match; start another run with --output")
    return tensors, metadata


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    """CRC-32 of names and contents."""
    checksum = 0
    for name in sorted(tensors):
        content = tensors[name].view(-1).view(torch.uint8).numpy().data
        checksum = crc32(content, crc32(name.encode(), checksum))
    return checksum
