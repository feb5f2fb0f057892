"""Files with the tensors of a run and a checksum: snapshots of weights, and checkpoints to resume from.

A checkpoint has:

    model.NAME             the weights
    ema.NAME               their exponential moving average, if there is one
    optimizer.NAME.KEY     the optimizer's state for each weight
    random.cpu, .cuda      the state of the random number generators that dropout draws from
    losses, gradient_norms of the updates since the last validation
    state                  in the metadata: the other fields of `TrainState`
    data                   in the metadata: what identifies the training data
    checksum               in the metadata: CRC-32 of the tensors
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Optimizer

from ..errors import ConfigError, DataError, refused
from ..machine.files import parse_json, read_whole, to_json, unused, write_whole
from ..nn import Transformer
from ..nn.weights import set_weights, weights
from ..train.averaging import average_weights
from .state import TrainState


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors and some text to a safetensors file, completely or not at all."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_whole(path, save(tensors, metadata={**(metadata or {}), "checksum": str(_checksum(tensors))}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors and the text that `write_tensors` wrote. Refuses a missing or damaged file."""
    with refused(DataError, f"{path} is missing or damaged", OSError, ValueError, SafetensorError, remedy=RESTART):
        read_whole(path, 0)
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in names}
        if metadata.get("checksum") != str(_checksum(tensors)):
            raise ValueError("its checksum does not match")
    return tensors, metadata


def read_state(path: Path) -> TrainState:
    """Read the state of the run in a checkpoint, without its tensors. Refuses a missing or damaged file."""
    damage = (OSError, ValueError, KeyError, TypeError, SafetensorError)
    with (
        refused(DataError, f"{path} is missing or damaged", *damage, remedy=RESTART),
        safe_open(path, framework="pt") as file,
    ):
        return TrainState(**parse_json(file.metadata()["state"]))


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    """Compute the CRC-32 of the tensors' names and contents."""
    checksum = 0
    for name in sorted(tensors):
        content = tensors[name].view(-1).view(torch.uint8).numpy().data
        checksum = crc32(content, crc32(name.encode(), checksum))
    return checksum


CHECKPOINT_FILE = "checkpoint.safetensors"
RESTART = "start another run with --output"


def save_checkpoint(
    path: Path, model: Transformer, optimizer: Optimizer, state: TrainState, *, data: Mapping[str, object]
) -> None:
    """Write the whole state of a run to a file, completely or not at all."""
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
    """Restore a model, its optimizer and the random number generators from a file. Returns the state of the run.

    Refuses a checkpoint of a different model or different data, and lists the differences.
    """
    tensors, metadata = read_tensors(path)
    with refused(DataError, f"{path} is damaged", KeyError, TypeError, ValueError, RuntimeError, remedy=RESTART):
        refuse_other_data(parse_json(metadata["data"]), data, path=path)
        with refused(DataError, f"{path} is of another model", ConfigError):
            set_weights(model, _without_prefix("model.", tensors))
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
    """Refuse data other than those with which the run was started, and list every difference."""
    differences = [
        f"{name} was {then.get(name)}, is {now.get(name)}"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]
    if differences:
        raise DataError(
            f"the data is not what {path.parent} was started with: {'; '.join(differences)}. A run can be resumed only "
            "with its own data; restore it, or start another run (--init-from takes over the weights)"
        ).mended_by("--output", str(unused(path.parent)))


def _with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def snapshot_path(folder: Path, step: int) -> Path:
    """Return the path of the file with the weights after update `step`."""
    return folder / f"{step:08d}.safetensors"


def save_snapshot(folder: Path, model: Transformer, *, step: int) -> None:
    """Write the weights after update `step`, for the average at the end of the run."""
    folder.mkdir(exist_ok=True)
    write_tensors(snapshot_path(folder, step), weights(model))


def average_snapshots(folder: Path, steps: Sequence[int]) -> dict[str, Tensor]:
    """Average the weights after some updates. Refuses a damaged or missing snapshot."""
    return average_weights(read_tensors(snapshot_path(folder, step))[0] for step in steps)


def remove_snapshots(folder: Path, *, keep: Sequence[int]) -> None:
    """Remove all snapshots except those after the updates in `keep`."""
    kept = {snapshot_path(folder, step) for step in keep}
    for path in folder.glob("[0-9]*.safetensors"):
        if path not in kept:
            path.unlink()
