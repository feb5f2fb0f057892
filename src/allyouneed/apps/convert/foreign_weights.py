"""Weights under another program's names → our model."""

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from ...bundle import MOST_POSITIONS
from ...config import ModelConfig
from ...errors import CheckpointError, ConfigError
from ...fast.uninitialized import UninitializedWeights
from ...nn import Transformer
from ...nn.weights import set_weights
from ...younger import build_model
from .checkpoint_files import as_float32, stored_bytes

MOST_SHARED = 4  # times that weights may be used: three tables of embeddings may be one


class StoredWeights:
    """The tensors of a checkpoint by name, and which of them were used."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors
        self._used: set[str] = set()
        self._left = MOST_SHARED * stored_bytes(tensors.values())

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def layers(self, stack: str) -> int:
        """How many layers there are under `STACK.layers.`."""
        parts = [name.split(".") for name in self._tensors if name.startswith(f"{stack}.layers.")]
        return len({part[2] for part in parts})

    def sizes(self, name: str, axes: int) -> tuple[int, ...]:
        """The shape of a tensor with so many axes."""
        tensor = self._find(name)
        if tensor.dim() != axes:
            raise CheckpointError(f"{name} must have {axes} axes; got shape {tuple(tensor.shape)}")
        return tuple(tensor.shape)

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A tensor in float32. Refuses another shape, numbers that are not finite, and more numbers than are stored."""
        tensor = self._find(name)
        if name not in self._used:
            self._left -= math.prod(shape) * tensor.element_size()
        self._used.add(name)
        if self._left < 0:
            raise CheckpointError(f"with {name}, the weights have more than {MOST_SHARED} times the numbers stored")
        tensor = as_float32(name, tensor, shape)
        if not tensor.isfinite().all():
            raise CheckpointError(f"{name} has numbers that are not finite")
        return tensor

    def are_equal(self, names: Iterable[str], shape: tuple[int, ...]) -> bool:
        """Whether those of these tensors that are stored are one and the same."""
        tables = [self.read(name, shape) for name in names if name in self]
        return all(torch.equal(table, tables[0]) for table in tables)

    def require_all_used(self, ignored: Iterable[str], program: str) -> None:
        """Refuse tensors that no part of our model was made from, such as those of another architecture."""
        if rest := sorted(self._tensors.keys() - self._used - set(ignored)):
            raise CheckpointError(f"the weights have {rest[0]!r:.80}, which no Transformer of {program} as ours has")

    def _find(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise CheckpointError(f"the weights lack {name}")
        return self._tensors[name]


def build_imported_model(config: ModelConfig, weight: Callable[[str, tuple[int, ...]], Tensor]) -> Transformer:
    """The model whose tensors `weight` returns by name and shape, all of them before memory for the model is taken."""
    refuse_many_positions(config)
    try:
        with torch.device("meta"), UninitializedWeights():
            shapes = {name: tuple(empty.shape) for name, empty in build_model(config).named_parameters()}
        tensors = {name: weight(name, shape) for name, shape in shapes.items()}
        with UninitializedWeights():
            model = build_model(config)
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    set_weights(model, tensors)
    return model.eval()


def refuse_many_positions(config: ModelConfig) -> None:
    """Refuse a table of positions of more than a GiB, which no weight of the checkpoint bounds."""
    if config.max_length * config.d_model > MOST_POSITIONS:
        raise CheckpointError(
            f"max_length times d_model must be at most {MOST_POSITIONS}; got {config.max_length} and {config.d_model}"
        )


def require_settings(settings: Mapping[str, object], expected: Mapping[str, tuple[object, ...]]) -> None:
    """Refuse a setting whose value is none of those that our model can express; a missing one has the first."""
    for name, values in expected.items():
        if settings.get(name, values[0]) not in values:
            known = " or ".join(map(repr, values))
            raise CheckpointError(f"the model has {name}={settings[name]!r:.60}; only {known} can be imported")
