"""What a stopped run needs to go on, in one safetensors file; and the mean of several (§6.1).

model.NAME             the weights
optimizer.NAME.KEY     Adam's moments and count for each of them
random.cpu, .cuda      the state of the random numbers that dropout draws
step                   in the metadata: updates done, which is also the place in the data
fingerprint            in the metadata: of the data it was trained on
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from ..bundle import set_weights, weights
from ..errors import ConfigError, DataError
from ..files import write_whole
from ..nn import Transformer


def save_checkpoint(path: Path, model: Transformer, optimizer: Optimizer, *, step: int, fingerprint: str) -> None:
    """Write everything a run is at this moment, whole or not at all."""
    tensors = {f"model.{name}": tensor for name, tensor in weights(model).items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{name}.{key}"] = value.detach().cpu().contiguous()
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    write_whole(path, save(tensors, metadata={"step": str(step), "fingerprint": fingerprint}))


def load_checkpoint(path: Path, model: Transformer, optimizer: Optimizer, *, fingerprint: str) -> int:
    """Put a model, its optimizer and the random numbers back to where they were; returns the step.

    Refuses a checkpoint of another model or, by its fingerprint, of other data.
    """
    tensors, about = _read(path)
    if about["fingerprint"] != fingerprint:
        raise DataError(f"the training pairs are not those {path} was trained on; a run goes on only with its own data")
    try:
        set_weights(model, _under("model.", tensors))
    except ConfigError as error:
        raise DataError(f"{path} is of another model: {error}") from error
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            key: value if key == "step" else value.to(parameter.device)
            for key, value in _under(f"optimizer.{name}.", tensors).items()
        }
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    return int(about["step"])


def average_checkpoints(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights in some checkpoints, summed in double precision."""
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in _under("model.", _read(path)[0]).items():
            total[name] = total.get(name, torch.zeros(())) + tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    return sorted(folder.glob("*.safetensors"), key=lambda path: int(path.stem))


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where the checkpoint after `step` updates stands."""
    return folder / f"{step:08d}.safetensors"


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} is no checkpoint: {error}") from error


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
