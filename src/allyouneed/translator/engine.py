"""What a translator needs of a model, `Engine`; and which engine a model gets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from ..config import ModelConfig
from ..decode import Step
from ..errors import ConfigError

if TYPE_CHECKING:
    from ..bundle import Bundle
    from ..nn import Transformer

Precision = Literal["float32", "int8", "bfloat16"]


class EngineStep(Step, Protocol):
    """The `Step` of a search with an engine."""

    def log_probabilities(self) -> Any:
        """Return log-probabilities of what may come next, (N, V), which `numpy.asarray` takes."""
        ...


class Engine(Protocol):
    """A model, or several as an ensemble, ready to translate; several threads may use it at once.

    `config` is that of the model; of an ensemble the first one's, with the smallest `max_length`.
    """

    @property
    def config(self) -> ModelConfig: ...

    @property
    def precision(self) -> Precision:
        """The precision of the weights."""
        ...

    @property
    def workers(self) -> int:
        """How many searches to run at once: one for each core, or 1 where one search uses the whole device."""
        ...

    def start(
        self, sources: Sequence[Sequence[int]], *, banned_ids: Sequence[int] = (), renormalize: bool = True
    ) -> EngineStep:
        """Encode sources, and return the step of one search.

        `banned_ids` have a probability of 0; with `renormalize` the others share what they had.
        """
        ...


class SlowerEngineWarning(UserWarning):
    """Another engine translates than was asked for."""


def make_engine(models: Sequence[Bundle | Transformer], precision: str = "auto") -> Engine:
    """Prepare a model for translating, or several as an ensemble.

    `precision` is that of the weights; "auto" is bfloat16 on a GPU that computes with it, else float32.
    """
    if precision not in ("auto", *get_args(Precision)):
        known = ", ".join(f'"{name}"' for name in ("auto", *get_args(Precision)))
        raise ConfigError(f"precision must be one of {known}; got {precision!r}")
    engines = [_make_one(model, precision) for model in models]
    if len(engines) == 1:
        return engines[0]
    from .ensemble import EnsembleEngine

    return EnsembleEngine(engines)


def _make_one(model: Bundle | Transformer, precision: str) -> Engine:
    # The native engine goes here, for a model on a CPU that its config describes; what follows is for all others.
    from ..bundle import Bundle
    from .definition import DefinitionEngine

    if precision == "int8":
        warnings.warn(
            "nothing here translates in int8; the model itself does, in float32", SlowerEngineWarning, stacklevel=3
        )
        precision = "float32"
    return DefinitionEngine(model.model if isinstance(model, Bundle) else model, precision)
