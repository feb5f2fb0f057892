"""Turn a model of another program into ours: rename and reorder its weights, and translate its settings.

Other programs order the axes of the residual stream with all sines first, then all cosines. Ours alternate.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from ...bundle import MOST_POSITIONS
from ...config import DecodeConfig, ModelConfig
from ...errors import CheckpointError, ConfigError
from ...fast.uninitialized import UninitializedWeights
from ...nn import Transformer
from ...nn.position import sinusoids
from ...nn.weights import set_weights
from ...text.normalize import Normalization
from ...text.vocabulary import Vocabulary
from ...younger import build_model
from .checkpoint_files import as_float32, stored_bytes

MOST_SHARED = 4  # how often weights may be used; three embedding tables may be the same
POSITION_TOLERANCE = 1e-3  # for sines of large angles in float32, or of a float16 checkpoint
TABLES = SOURCE, TARGET, PROJECTION = "source_embedding.table", "target_embedding.table", "projection.table"
OUR_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu"}  # their names → ours
_RESIDUAL_AXES = {0: r"(output|outer)\.(weight|bias)|norm\.(gain|bias)", 1: r"(query|key|value|inner)\.weight|\.table"}

Setting = TypeVar("Setting")


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightFormat:
    """How a program stores the weights of a model like ours. Every matrix has the shape (outputs, inputs)."""

    program: str
    names: Mapping[str, str]  # a part of our names → its name there
    first_layer: int = 0  # number of the first layer
    shared: Mapping[str, str] = field(default_factory=dict)  # a table that may be missing → the table that contains it
    sinusoids: Iterable[str] = ()  # tables of sines and cosines, (L, D)

    def name(self, ours: str) -> str:
        """Return the other program's name for a weight of our model."""
        ours = re.sub(r"(?<=\.layers\.)\d+", lambda match: str(int(match[0]) + self.first_layer), ours)
        parts = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)))
        return re.sub(parts, lambda match: self.names[match[0]], ours)

    def reorder(self, name: str, weight: Tensor, *, back: bool = False) -> Tensor:
        """Reorder the residual-stream axis of a weight for the other program, or with `back` for our model."""
        axis = next((axis for axis, names in _RESIDUAL_AXES.items() if re.search(f"({names})$", name)), None)
        if axis is None:
            return weight
        order = sines_first(weight.size(axis))
        return weight.index_select(axis, order.argsort() if back else order)


def sines_first(d_model: int) -> Tensor:
    """Return the axes of our residual stream in the other order: all sines first, then all cosines."""
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


class StoredWeights:
    """The tensors of a checkpoint, by the names of their program, with a record of which have been read.

    `unscaled` are the tables, by our names, that the program does not multiply by √d_model.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], weight_format: WeightFormat, *, unscaled: Iterable[str] = ()
    ) -> None:
        self._tensors = tensors
        self._format = weight_format
        self._unscaled = unscaled
        self._used: set[str] = set()
        self._left = MOST_SHARED * stored_bytes(tensors.values())

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Read a tensor in float32.

        Refuses another shape, numbers that are not finite, and more numbers than are stored.
        """
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

    def our_weight(self, name: str, shape: tuple[int, ...], config: ModelConfig) -> Tensor:
        """Read a tensor of our model. Refuses as `read` does."""
        stored = self._format.name(name)
        weight = self.read(stored if stored in self else self._format.shared.get(stored, stored), shape)
        weight = self._format.reorder(name, weight, back=True)
        return weight / math.sqrt(config.d_model) if name in self._unscaled else weight

    def refuse_the_rest(self, config: ModelConfig) -> None:
        """Refuse a model with other positions than ours, or with tensors that have no place in our model."""
        for name in self._format.sinusoids:
            if name in self:
                table = self.read(name, (self._length(name), config.d_model))[: config.max_length]
                expected = sinusoids(len(table), config.d_model)[:, sines_first(config.d_model)]
                if not torch.allclose(table, expected, rtol=0, atol=POSITION_TOLERANCE):
                    raise CheckpointError(f"{name} are not the sines and cosines of {self._format.program}")
        shared = {*map(self._format.name, TABLES), *self._format.shared.values()}
        if rest := sorted(self._tensors.keys() - self._used - shared):
            raise CheckpointError(
                f"the weights have {rest[0]!r:.80}, which no Transformer of {self._format.program} as ours has"
            )

    def _length(self, name: str) -> int:
        """Return the number of rows in a table."""
        table = self._find(name)
        if table.dim() != 2:
            raise CheckpointError(f"{name} must have 2 axes; got shape {tuple(table.shape)}")
        return len(table)

    def _find(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise CheckpointError(f"the weights lack {name}")
        return self._tensors[name]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """What an importer returns: the parts of a bundle, and the stored weights of its model."""

    stored: StoredWeights
    config: ModelConfig  # `read_checkpoint` adds the sizes of the vocabulary
    vocabulary: Vocabulary
    decode: DecodeConfig
    normalization: Normalization = field(default_factory=lambda: Normalization(unicode="none"))
    languages: tuple[str, str] = ("", "")  # as the program writes them


def build_imported_model(stored: StoredWeights, config: ModelConfig) -> Transformer:
    """Build the model with these weights. All tensors are read and compared before memory for the model is allocated.

    A projection bias that is zero is dropped. Refuses a table of positions of more than a GiB, because no weight of the
    checkpoint limits its size.
    """
    if config.max_length * config.d_model > MOST_POSITIONS:
        raise CheckpointError(
            f"max_length times d_model must be at most {MOST_POSITIONS}; got {config.max_length} and {config.d_model}"
        )
    try:
        with torch.device("meta"), UninitializedWeights():
            shapes = {name: tuple(empty.shape) for name, empty in build_model(config).named_parameters()}
        tensors = {name: stored.our_weight(name, shape, config) for name, shape in shapes.items()}
        stored.refuse_the_rest(config)
        if config.projection_bias and not tensors["projection.bias"].any():
            del tensors["projection.bias"]
            config = replace(config, projection_bias=False)
        with UninitializedWeights():
            model = build_model(config)
        set_weights(model, tensors)
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    return model.eval()


def require_settings(settings: Mapping[str, object], expected: Mapping[str, tuple[object, ...]]) -> None:
    """Refuse a setting whose value our model cannot express. A missing setting counts as the first expected value."""
    for name, values in expected.items():
        if settings.get(name, values[0]) not in values:
            known = " or ".join(map(repr, values))
            raise CheckpointError(f"the model has {name}={settings[name]!r:.60}; only {known} can be imported")


def require_equal(name: str, encoder: Setting, decoder: Setting) -> Setting:
    """Return the value that a setting has in both encoder and decoder. Refuses different values."""
    if encoder != decoder:
        raise CheckpointError(f"encoder and decoder must have the same {name}; got {encoder!r:.20} and {decoder!r:.20}")
    return encoder


def our_value(name: str, value: object, ours: Mapping[str, Any]) -> Any:
    """Return our name for a value of a setting. Refuses values without an equivalent."""
    if value not in ours:
        raise CheckpointError(f"{name} must be one of {', '.join(ours)}; got {value!r:.40}")
    return ours[str(value)]
