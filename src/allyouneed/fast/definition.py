"""The model itself as an engine: what computes where a faster engine differs from `Transformer.forward`."""

from dataclasses import dataclass, replace
from typing import Generic

import torch
from torch import Tensor

from ..decode.beam import Best, top_continuations
from ..decode.likelihood import eval_copy
from ..decode.step import AnyState
from ..nn.decoder import DecoderState
from ..nn.transformer import Transformer
from .engine import Precision, banned_log_softmax


class _ModelEngine(Generic[AnyState]):
    precision: Precision = "float32"
    compiled = False

    def __init__(self, model: Transformer) -> None:
        self._model, self.config = eval_copy(model), model.config

    def step(self, last: Tensor, state: AnyState) -> tuple[Tensor, AnyState]:
        """As in `Engine`."""
        raise NotImplementedError

    def log_probabilities(self, last: Tensor, state: AnyState, banned_ids: Tensor) -> tuple[Tensor, AnyState]:
        """As in `Engine`."""
        logits, state = self.step(last, state)
        return banned_log_softmax(logits, banned_ids), state

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """As in `Engine`."""
        return top_continuations(totals, log_probabilities, count)


class StepEngine(_ModelEngine[DecoderState]):
    """`Transformer.start` and `Transformer.step`."""

    def start(self, source: Tensor) -> DecoderState:
        """As in `Engine`."""
        return self._model.start(source)

    def step(self, last: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """As in `Engine`."""
        return self._model.step(last, state)


@dataclass(frozen=True, slots=True)
class PrefixState:
    """The sources (B, S) of a search and all tokens so far of its N hypotheses, (N, L)."""

    source: Tensor
    prefixes: Tensor

    def reorder(self, hypotheses: Tensor) -> "PrefixState":
        """As in `State`."""
        return replace(self, prefixes=self.prefixes[hypotheses])

    def keep(self, sentences: Tensor) -> "PrefixState":
        """As in `State`."""
        prefixes = self.prefixes.view(len(self.source), -1, self.prefixes.size(1))[sentences].flatten(0, 1)
        return PrefixState(self.source[sentences], prefixes)


class ForwardEngine(_ModelEngine[PrefixState]):
    """`Transformer.forward` of the whole source and of all tokens so far, at every step."""

    def start(self, source: Tensor) -> PrefixState:
        """As in `Engine`."""
        return PrefixState(source, source[:, :0])

    def step(self, last: Tensor, state: PrefixState) -> tuple[Tensor, PrefixState]:
        """As in `Engine`."""
        prefixes = torch.cat((state.prefixes, last[:, None]), 1)
        sources = state.source.repeat_interleave(len(prefixes) // len(state.source), 0)
        return self._model(sources, prefixes)[:, -1], replace(state, prefixes=prefixes)
