"""What a stopped run needs to go on, in one safetensors file.

model.NAME             the weights
mean.NAME              their running mean, if there is one
optimizer.NAME.KEY     the optimizer's state of each of them
random.cpu, .cuda      the state of the random numbers that dropout draws
losses                 of the updates since the last pause
place                  in the metadata: updates done, which is also the place in the data, and what happened
data                   in the metadata: what the run is trained on, to be compared
checksum               in the metadata: CRC-32 of the tensors
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from ..errors import AllYouNeedError, ConfigError, DataError
from ..files import to_json, write_whole
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from ..train.state import TrainState


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What `load_checkpoint` hands back besides what it puts into model, optimizer and random numbers."""

    state: TrainState
    mean: dict[str, Tensor]
    losses: Tensor


def save_checkpoint(
    path: Path,
    model: Transformer,
    optimizer: Optimizer,
    *,
    state: TrainState,
    data: Mapping[str, object],
    mean: Mapping[str, Tensor] | None = None,
    losses: Tensor | None = None,
) -> None:
    """Write everything a run is at this moment, whole or not at all."""
    tensors = _over("model.", weights(model)) | _over("mean.", mean or {})
    for name, parameter in model.named_parameters():
        tensors |= _over(f"optimizer.{name}.", optimizer.state[parameter])
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    tensors["losses"] = torch.zeros(0) if losses is None else losses.cpu()
    about = {"place": to_json(asdict(state)), "data": to_json(data), "checksum": str(_checksum(tensors))}
    write_whole(path, save(tensors, metadata=about))


def load_checkpoint(path: Path, model: Transformer, optimizer: Optimizer, *, data: Mapping[str, object]) -> Checkpoint:
    """Put a model, its optimizer and the random numbers back to where they were.

    Refuses a checkpoint of another model or of other data, and says what differs.
    """
    tensors, about = _read(path)
    try:
        if int(about["checksum"]) != _checksum(tensors):
            raise ValueError("its tensors are not those that were written")
        return _put_back(path, tensors, about, model, optimizer, data)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, AllYouNeedError):
            raise
        raise DataError(f"{path} is damaged: {error!r}; begin another run with --output") from error


def _put_back(
    path: Path,
    tensors: dict[str, Tensor],
    about: dict[str, str],
    model: Transformer,
    optimizer: Optimizer,
    data: Mapping[str, object],
) -> Checkpoint:
    refuse_other_data(json.loads(about["data"]), data, path=path)
    try:
        set_weights(model, _under("model.", tensors))
    except ConfigError as error:
        raise DataError(f"{path} is of another model: {error}") from error
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            key: value.to(parameter.device) for key, value in _under(f"optimizer.{name}.", tensors).items()
        }
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    return Checkpoint(TrainState(**json.loads(about["place"])), _under("mean.", tensors), tensors["losses"])


def refuse_other_data(then: Mapping[str, object], now: Mapping[str, object], *, path: Path) -> None:
    """Refuse, showing every difference, data that is not what a run was begun with."""
    differences = [
        f"{name} was {then.get(name)}, is {now.get(name)}"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]
    if differences:
        raise DataError(
            f"the data is not what {path.parent} was begun with: {'; '.join(differences)}. A run goes on only with "
            "its own data; put it back, or begin another run (--init-from carries the weights over)"
        )


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} is no checkpoint: {error}") from error


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    found = 0
    for name in sorted(tensors):
        found = crc32(
            tensors[name].cpu().contiguous().view(-1).view(torch.uint8).numpy().data, crc32(name.encode(), found)
        )
    return found


def _over(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
