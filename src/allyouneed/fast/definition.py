"""The model itself as an engine: what computes where a faster engine differs from `Transformer.forward`."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Generic

import torch
from torch import Tensor

from ..decode.beam import Best, top_continuations
from ..decode.likelihood import eval_copy
from ..decode.step import AnyState
from ..nn.transformer import Memory, Transformer
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


@dataclass(frozen=True, slots=True)
class CacheState:
    """A memory and the KV cache over it."""

    memory: Memory
    cache: Any

    def reorder(self, hypotheses: Tensor) -> "CacheState":
        """As in `State`."""
        cache = deepcopy(self.cache)
        cache.select(hypotheses)
        return replace(self, cache=cache)

    def keep(self, sentences: Tensor) -> "CacheState":
        """As in `State`."""
        count = len(self.memory.hidden_states)
        rows = len(self.cache.blocks[0].tokens.kept[0])
        cache = deepcopy(self.cache)
        cache.select(torch.arange(rows).view(count, -1)[sentences.cpu()].flatten(), sentences)
        return CacheState(self.memory.select(sentences), cache)


class StepEngine(_ModelEngine[CacheState]):
    """`Transformer.decode` with a KV cache."""

    def start(self, source: Tensor) -> CacheState:
        """As in `Engine`."""
        return CacheState(self._model.encode(source), self._model.new_cache())

    def step(self, last: Tensor, state: CacheState) -> tuple[Tensor, CacheState]:
        """As in `Engine`."""
        memory, cache = state.memory, deepcopy(state.cache)
        return self._model.decode(last[:, None], memory, cache)[:, 0], replace(state, cache=cache)


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
