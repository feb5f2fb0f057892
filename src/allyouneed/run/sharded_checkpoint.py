"""Everything that a sharded run needs to be resumed, by any number of processes.

checkpoints/NUMBER/*.safetensors   the parts of all workers, a file each (`torch.distributed.checkpoint`):
    model.NAME, optimizer.NAME.KEY as in checkpoint.py
checkpoints/NUMBER/state.json      the `TrainState`, what identifies the training data, and the CRC-32 of the files

The newest folder counts. It gets its name when all workers have written their part; then the older one is removed.
The files are safetensors and JSON, from which nothing but numbers and text can come.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.optim import Optimizer

from ..checksums import crc32_checksum
from ..errors import AllYouNeedError, DataError, OutputError
from ..files import parse_json, read_whole, refusing_errors, rename, to_json, write_whole
from ..nn import Transformer
from ..train.state import TrainState
from ..train.workers import Workers
from .checkpoint import refuse_other_data


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint in a folder, if there is one."""
    return max(folder.glob("[0-9]*"), default=None, key=lambda path: int(path.name))


def save_sharded(
    folder: Path,
    model: Transformer,
    optimizer: Optimizer,
    state: TrainState,
    *,
    data: Mapping[str, object],
    workers: Workers,
) -> None:
    """Write the whole state of a run, whole or not at all; every worker calls this and writes its part."""

    def begin() -> Path:
        newest = newest_checkpoint(folder)
        path = folder / f"{int(newest.name) + 1 if newest else 1:08d}"
        with refusing_errors(path):
            shutil.rmtree(_partial(path), ignore_errors=True)
            _partial(path).mkdir(parents=True)
        return path

    path = workers.from_first(begin)
    with _one_line(path, OutputError, "could not be written"):
        writer = HuggingFaceStorageWriter(str(_partial(path)), save_distributed=True)
        save(_tensors(model, optimizer), storage_writer=writer)

    checksums = workers.gather(crc32_checksum(_partial(path) / _file_name(workers.rank)))

    def end() -> None:
        table = {
            "state": state.scalars(),
            "losses": [float(loss) for loss in state.losses],
            "gradient_norms": [float(norm) for norm in state.gradient_norms],
            "data": dict(data),
            "checksums": {_file_name(rank): checksum for rank, checksum in enumerate(checksums)},
        }
        write_whole(_partial(path) / "state.json", to_json(table))
        rename(_partial(path), path)
        for older in folder.glob("*"):
            if older != path:
                shutil.rmtree(older)

    workers.from_first(end)


def read_sharded_state(path: Path, *, data: Mapping[str, object]) -> TrainState:
    """The state of the run in a checkpoint. Refuses one of other data, and one that is damaged."""
    try:
        table = parse_json(read_whole(path / "state.json"))
        refuse_other_data(table["data"], data, path=path.parent)
        return TrainState(
            **table["state"],
            losses=[torch.tensor(loss) for loss in table["losses"]],
            gradient_norms=[torch.tensor(norm) for norm in table["gradient_norms"]],
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, AllYouNeedError):
            raise
        raise _damaged(path, f"state.json: {error}") from error


def load_sharded(
    path: Path, model: Transformer, optimizer: Optimizer, *, data: Mapping[str, object], workers: Workers
) -> TrainState:
    """Restore a sharded model and its optimizer; every worker calls this and reads its part.

    The checkpoint may be of another number of workers. Refuses one of another model or of other data.
    """
    state = read_sharded_state(path, data=data)
    _refuse_damaged(path, workers)
    with _one_line(path, DataError, "is damaged"):
        sizes = {
            name: tensor.size
            for name, tensor in HuggingFaceStorageReader(str(path)).read_metadata().state_dict_metadata.items()
            if isinstance(tensor, TensorStorageMetadata)
        }
    tensors = {f"model.{name}": parameter.detach() for name, parameter in model.named_parameters()}
    if {name: tensor.shape for name, tensor in tensors.items()} != {
        name: size for name, size in sizes.items() if name.startswith("model.")
    }:
        raise DataError(f"{path} is of another model; start another run with --output")
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {}
        prefix = f"optimizer.{name}."
        for key in (key for key in sizes if key.startswith(prefix)):
            is_number = key.endswith(".step")
            tensors[key] = torch.zeros(sizes[key]) if is_number else torch.zeros_like(parameter)
            optimizer.state[parameter][key.removeprefix(prefix)] = tensors[key]
    with _one_line(path, DataError, "is damaged"):
        load(tensors, storage_reader=HuggingFaceStorageReader(str(path)))
    device = next(model.parameters()).device
    for states in optimizer.state.values():
        states.update({key: value.to(device).reshape(()) for key, value in states.items() if key == "step"})
    return state


def _tensors(model: Transformer, optimizer: Optimizer) -> dict[str, Tensor]:
    """Weights and the optimizer's state by name; the step of an optimizer, a single number, has the shape (1,)."""
    tensors = {f"model.{name}": parameter.detach() for name, parameter in model.named_parameters()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{name}.{key}"] = value if value.dim() else value.reshape(1)
    return tensors


def _refuse_damaged(path: Path, workers: Workers) -> None:
    """Refuse files that have changed; every worker reads some of them."""
    expected = parse_json(read_whole(path / "state.json")).get("checksums", {})
    names = sorted({*expected, *(file.name for file in path.glob("*.safetensors"))})
    wrong = 0
    for number, name in enumerate(names, 1):
        file = path / name
        if number % workers.count == workers.rank and (
            not file.is_file() or crc32_checksum(file) != expected.get(name)
        ):
            wrong = number
    if wrong := workers.agree(wrong):
        raise _damaged(path, f"{names[wrong - 1]} is missing or has changed")


def _file_name(rank: int) -> str:
    """The file of a worker, as `HuggingFaceStorageWriter` names it."""
    return f"shard-{rank + 1:05d}-model-00001-of-00001.safetensors"


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"{path} is damaged ({why}); start another run with --output")


@contextmanager
def _one_line(path: Path, kind: type[AllYouNeedError], what: str) -> Iterator[None]:
    """Raise what PyTorch reports about the files of a checkpoint as one error of `kind`."""
    try:
        yield
    except CheckpointException as failure:
        first = next(iter(failure.failures.values()))[0]
        raise kind(f"{path} {what}: {str(first).partition(chr(10))[0]}") from failure
    except (OSError, ValueError, json.JSONDecodeError) as error:
        raise kind(f"{path} {what}: {error}") from error
