"""The Transformer written for translating, in PyTorch: the logits of `nn/` from fewer and larger operations.

`Transformer` is the definition, and a test holds this engine to it; its blocks are in eager_blocks.py. What differs:

- Linear maps of the same vector are one product: queries, keys and values of self-attention; keys and
  values of the memory.
- Keys are normalized and rotated once, if at all, and values mixed; the KV cache keeps the results (adjustment.py).
- The KV cache never moves when hypotheses are dropped or forked (kv_cache.py).
- Weights may be int8 (quantization.py). Norms, attention and log-probabilities are then computed in float64 and
  rounded once: the next linear map rounds their results to 256 levels, so a difference in the last bit of a float32,
  which another order of a sum makes, could become one of a whole level. The compiled kernels do the same.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from ..decode.beam import Best, top_continuations
from ..errors import InputError
from ..nn.embedding import refuse_unknown_ids
from ..nn.position import refuse_long
from ..nn.transformer import Transformer, require_rows
from .adjustment import rotation_table
from .attention import attention_bias
from .eager_blocks import EagerDecoderBlock, EagerEncoderBlock, EagerNorm, FloatLinear, LinearMap
from .engine import Precision, banned_log_softmax
from .kv_cache import CachedState, KVCache
from .quantization import Int8Linear


class EagerEngine:
    """An `Engine` of PyTorch operations, for a model whose parts are those that its config names (selection.py).

    It shares some weights with the model, and refuses to begin a search once they have changed. Refuses int8 on a
    device without int8 operators.
    """

    compiled = False
    reads_any_row = False  # whether `_decode` can use the rows of a KV cache that `state.rows` names, in any order

    @torch.inference_mode()
    def __init__(self, model: Transformer, *, precision: Precision = "float32") -> None:
        self.config, self.precision, self.dtype = model.config, precision, self._dtype(precision)
        self.scale = math.sqrt(model.config.d_model)
        self.source_table = model.source_embedding.table.detach()
        self.target_table = model.target_embedding.table.detach()
        self.source_position = model.source_position.encoding.detach()
        self.target_position = model.target_position.encoding.detach()
        self.rotation = rotation_table(model.config).to(self.target_table.device, self.dtype)
        self._versions = WeightVersions(model)
        self._prepare(model)

    def start(self, source: Tensor) -> CachedState:
        """As in `Engine`."""
        if self._versions.have_changed():
            raise InputError("the weights of the model have changed since its engine was made; make a new Translator")
        require_rows("source", source)
        rows, length = source.shape
        refuse_long(length, len(self.source_position))
        real = source != self.config.pad_id
        padding = None if bool(real.all()) else attention_bias(real, self.dtype)[:, None, None, :]
        with _refusing_unknown_ids(source, self.source_table):
            x = torch.add(self.source_position[:length], torch.embedding(self.source_table, source), alpha=self.scale)
        x = self._encode(x, padding)
        memory, caches = self._project_memory(x)
        return CachedState(memory, padding, caches, hypotheses=rows)

    def step(self, last: Tensor, state: CachedState) -> tuple[Tensor, CachedState]:
        """As in `Engine`."""
        return self._step(last, state, None)

    def log_probabilities(self, last: Tensor, state: CachedState, banned_ids: Tensor) -> tuple[Tensor, CachedState]:
        """As in `Engine`."""
        return self._step(last, state, banned_ids)

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        """As in `Engine`."""
        return top_continuations(totals, log_probabilities, count)

    def _dtype(self, precision: Precision) -> torch.dtype:
        """In which attention and norms are computed, and the KV cache is kept."""
        return torch.float64 if precision == "int8" else torch.float32

    def _prepare(self, model: Transformer) -> None:
        make, dtype = Int8Linear if self.precision == "int8" else FloatLinear, self.dtype
        self.encoder = [EagerEncoderBlock(block, make, dtype) for block in model.encoder.layers]
        self.decoder = [EagerDecoderBlock(block, make, dtype) for block in model.decoder.layers]
        self.encoder_norm = EagerNorm(model.encoder.norm, dtype)
        self.decoder_norm = EagerNorm(model.decoder.norm, dtype)
        self.projection: LinearMap = make(model.projection.table, model.projection.bias)

    def _step(self, last: Tensor, state: CachedState, banned_ids: Tensor | None) -> tuple[Tensor, CachedState]:
        if not self.reads_any_row:
            state = state.gather()
        refuse_long(state.length + 1, len(self.target_position))
        width = state.hypotheses // state.sentences
        mask = state.ancestry_mask
        if width > 1 or mask is not None:  # a hypothesis attends to its own newest token, not to the others'
            newest = _diagonal_bias(state.sentences, width, self.dtype, self.target_table.device)
            mask = newest if mask is None else torch.cat((mask, newest), 1)
        with _refusing_unknown_ids(last, self.target_table):
            scores, caches = self._decode(last, state, mask, banned_ids)
        return scores, CachedState(
            state.memory_caches,
            state.padding,
            caches,
            state.hypotheses,
            state.cached + width,
            mask,
            state.length + 1,
            state.rows,
        )

    def _encode(self, x: Tensor, padding: Tensor | None) -> Tensor:
        """Embedded sources → the memory, both (B, S, D)."""
        rotation = self.rotation[: x.size(1)] if len(self.rotation) else None
        for block in self.encoder:
            x = block(x, padding, rotation)
        return self.encoder_norm(x)

    def _project_memory(self, memory: Tensor) -> tuple[tuple[KVCache, ...], tuple[KVCache, ...]]:
        """For each block keys and values of the memory (B, S, D), and an empty KV cache."""
        return (
            tuple(block.project_kv(memory) for block in self.decoder),
            tuple(block.self_attention.empty_cache(memory) for block in self.decoder),
        )

    def _decode(
        self, last: Tensor, state: CachedState, mask: Tensor | None, banned_ids: Tensor | None
    ) -> tuple[Tensor, tuple[KVCache, ...]]:
        """The logits (N, V), or with `banned_ids` log-probabilities, and the caches with the last tokens in them."""
        width = state.hypotheses // state.sentences
        position = state.length
        x = torch.add(self.target_position[position], torch.embedding(self.target_table, last), alpha=self.scale)
        x = x.view(state.sentences, width, -1)  # (N, D) → (B, N/B, D): hypotheses as if they were positions
        rotation = self.rotation[position].unsqueeze(-3) if len(self.rotation) else None  # (1, 2, K / 2)
        mask = None if mask is None else mask.view(state.sentences, 1, width, -1)
        caches: list[KVCache] = []
        for block, cache, memory in zip(self.decoder, state.caches, state.memory_caches, strict=True):
            x, cache = block(x, cache, state.cached, mask, memory, state.padding, rotation)
            caches.append(cache)
        logits = self.projection(self.decoder_norm(x).view(state.hypotheses, -1))
        return logits if banned_ids is None else banned_log_softmax(logits, banned_ids, self.dtype), tuple(caches)


class WeightVersions:
    """Notices changes by PyTorch's count of the changes of each tensor; one through `tensor.data` is not counted."""

    def __init__(self, model: nn.Module) -> None:
        self._tables = [table for part in model.modules() for table in (part._parameters, part._buffers) if table]
        self._versions = self._read()

    def have_changed(self) -> bool:
        """Whether a tensor was changed in place, or replaced, since this was made."""
        now = self._read()
        return len(now) != len(self._versions) or any(
            tensor is not before or version != old
            for (tensor, version), (before, old) in zip(now, self._versions, strict=True)
        )

    def _read(self) -> list[tuple[Tensor, int]]:
        """How often each tensor has been changed in place; one of inference mode has no count."""
        return [
            (tensor, 0 if tensor.is_inference() else tensor._version)
            for table in self._tables
            for tensor in table.values()
            if tensor is not None
        ]


class _refusing_unknown_ids:  # noqa: N801  a function with `contextmanager` would take 2 µs of every step
    """Turn the IndexError of a lookup of unknown ids, on a CPU, into the InputError that all engines raise."""

    def __init__(self, ids: Tensor, table: Tensor) -> None:
        self.ids, self.table = ids, table

    def __enter__(self) -> None:
        if self.ids.dtype != torch.int64 or self.ids.device.type != "cpu":
            refuse_unknown_ids(self.ids, len(self.table))

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, IndexError):
            refuse_unknown_ids(self.ids, len(self.table))


@lru_cache(64)
def _diagonal_bias(sentences: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The attention bias of the newest tokens: each of a sentence's E hypotheses sees its own, (B · E, E)."""
    return attention_bias(torch.eye(width, dtype=torch.bool, device=device), dtype).repeat(sentences, 1)
