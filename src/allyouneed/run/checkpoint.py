"""Everything that a run needs to be resumed, in one safetensors file.

model.NAME             the weights
ema.NAME               their exponential moving average, if there is one
optimizer.NAME.KEY     the optimizer's state of each of them
random.cpu, .cuda      the state of the random number generators that dropout draws from
losses, gradient_norms of the updates since the last validation
state                  in the metadata: the other fields of `TrainState`
data                   in the metadata: what identifies the training data
checksum               in the metadata: CRC-32 of the tensors
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..errors import AllYouNeedError, ConfigError, DataError
from ..files import parse_json, to_json
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from .state import TrainState
from .tensor_file import read_tensors, write_tensors

CHECKPOINT_FILE = "checkpoint.safetensors"


def save_checkpoint(
    path: Path, model: Transformer, optimizer: Optimizer, state: TrainState, *, data: Mapping[str, object]
) -> None:
    """Write the whole state of a run, whole or not at all."""
    tensors = _with_prefix("model.", weights(model)) | _with_prefix("ema.", state.ema)
    for name, parameter in model.named_parameters():
        tensors |= _with_prefix(f"optimizer.{name}.", optimizer.state[parameter])
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    for name, course in (("losses", state.losses), ("gradient_norms", state.gradient_norms)):
        tensors[name] = torch.stack(course) if course else torch.zeros(0)
    write_tensors(path, tensors, {"state": to_json(state.scalars()), "data": to_json(data)})


def load_checkpoint(path: Path, model: Transformer, optimizer: Optimizer, *, data: Mapping[str, object]) -> TrainState:
    """Restore a model, its optimizer and the random number generators; returns the state of the run.

    Refuses a checkpoint of another model or of other data, and lists the differences.
    """
    tensors, metadata = read_tensors(path)
    try:
        return _restore(path, tensors, metadata, model, optimizer, data)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, AllYouNeedError):
            raise
        raise DataError(f"{path} is damaged: {error!r}; start another run with --output") from error


def _restore(
    path: Path,
    tensors: dict[str, Tensor],
    metadata: dict[str, str],
    model: Transformer,
    optimizer: Optimizer,
    data: Mapping[str, object],
) -> TrainState:
    refuse_other_data(parse_json(metadata["data"]), data, path=path)
    try:
        set_weights(model, _without_prefix("model.", tensors))
    except ConfigError as error:
        raise DataError(f"{path} is of another model: {error}") from error
    device = next(model.parameters()).device
    for name, parameter in model.named_parameters():
        state = _without_prefix(f"optimizer.{name}.", tensors)
        optimizer.state[parameter] = {key: value.to(device) for key, value in state.items()}
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    ema = {name: tensor.to(device) for name, tensor in _without_prefix("ema.", tensors).items()}
    losses, norms = (list(tensors[name].to(device)) for name in ("losses", "gradient_norms"))
    return TrainState(**parse_json(metadata["state"]), losses=losses, gradient_norms=norms, ema=ema)


def refuse_other_data(then: Mapping[str, object], now: Mapping[str, object], *, path: Path) -> None:
    """Refuse other data than the run was started with, and list every difference."""
    differences = [
        f"{name} was {then.get(name)}, is {now.get(name)}"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]
    if differences:
        raise DataError(
            f"the data is not what {path.parent} was started with: {'; '.join(differences)}. A run can be resumed only "
            "with its own data; restore it, or start another run (--init-from takes over the weights)"
        )


def _with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
