"""Convert a bundle to ONNX: an encoder, and a decoder step with its KV cache, for onnxruntime and other runtimes.

    encoder.onnx    source (B, S) → memory_keys, memory_values (layers, B, H, S, K), memory_mask (B, S)
    decoder.onnx    last (B,), keys, values (layers, B, H, T, K), memory_keys, memory_values, memory_mask
                    → log_probabilities (B, V), keys, values (layers, B, H, T + 1, K)

Ids are int64. True in the mask means a token of the source, False padding. T, the length of the cache, is 0 in the
first step. Tokens that no search may write have a log-probability of minus infinity. A search selects its hypotheses on
axis 1 of keys and values. The metadata of both graphs has the model's `max_length` in tokens. `examples/onnx_greedy.py`
decodes greedily with onnxruntime and NumPy only.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...bundle import Bundle
from ...config import DecodeConfig
from ...decode import SearchLimits, search
from ...nn import DecoderCache, KVCache, Transformer
from ...nn.decoder import BlockCache
from ...translator.array_step import ArrayStep
from ...translator.scoring import score_targets
from ...younger import rotary
from .exports import ExportPrecision, banned_ids
from .vocabularies import save_tokenizers

NumPyArray = np.ndarray[Any, np.dtype[Any]]
ENCODER_OUTPUTS = ("memory_keys", "memory_values", "memory_mask")
DECODER_INPUTS = ("last", "keys", "values", *ENCODER_OUTPUTS)
DECODER_OUTPUTS = ("log_probabilities", "new_keys", "new_values")


class ONNXEncoder(nn.Module):
    """The encoder, from ids of sources to the keys and values of the memory for every layer of the decoder."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        model = self.model
        mask = source != model.config.pad_id
        x = F.embedding(source, model.source_embedding.table) * math.sqrt(model.config.d_model)
        x = x + model.source_position.encoding[: source.size(1)]
        memory = model.encoder(x, mask[:, None, None, :])
        projected = [layer.cross_attention.project(memory[:, :0], memory, memory) for layer in model.decoder.layers]
        return (
            torch.stack([keys for _, keys, _ in projected]),
            torch.stack([values for _, _, values in projected]),
            mask,
        )


class ONNXDecoderStep(nn.Module):
    """A decoder step, from the last ids and the KV cache to log-probabilities of the next ids and a longer cache."""

    bias: Tensor

    def __init__(self, model: Transformer, banned: tuple[int, ...]) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("bias", torch.zeros(model.config.effective_target_vocab_size), persistent=False)
        self.bias[list(banned)] = -torch.inf

    def forward(
        self, last: Tensor, keys: Tensor, values: Tensor, memory_keys: Tensor, memory_values: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        model = self.model
        x = F.embedding(last[:, None], model.target_embedding.table) * math.sqrt(model.config.d_model)
        x = x + model.target_position.encoding[keys.size(3)]
        cache = DecoderCache(len(keys))
        cache.blocks = [
            BlockCache(KVCache((keys[i], values[i])), KVCache((memory_keys[i], memory_values[i]), grows=False))
            for i in range(len(keys))
        ]
        everyone = mask.new_ones(1, 1)  # every token in the cache is earlier
        x = model.decoder(x, x, mask[:, None, None, :], everyone, cache)  # the memory is in the cache
        logits = model.projection(x)[:, 0] + self.bias
        kept = [block.tokens.kept for block in cache.blocks if block.tokens.kept]
        return logits.log_softmax(-1), torch.stack([pair[0] for pair in kept]), torch.stack([pair[1] for pair in kept])


def write_onnx(bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
    """Write the graphs of encoder and decoder, and the tokenizer."""
    _write_graphs(bundle, folder)
    save_tokenizers(bundle, folder)


class ONNXFolder:
    """An exported folder in onnxruntime; see `ConvertedModel`."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        from onnxruntime import InferenceSession

        self._encoder, self._decoder = (
            InferenceSession(str(folder / f"{part}.onnx"), providers=["CPUExecutionProvider"])
            for part in ("encoder", "decoder")
        )
        self._tokenizer = bundle.target_tokenizer

    def start(self, source: list[int]) -> ONNXStep:
        """Encode one source, and return the step of one search."""
        memory = self._encoder.run(None, {"source": np.array([source], np.int64)})
        return ONNXStep(self._decoder, memory)

    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        limits = SearchLimits(sos_id=self._tokenizer.sos_id, eos_id=self._tokenizer.eos_id, max_lengths=[max_length])
        ((best,),) = search(self.start(source), DecodeConfig(beam=beam, alpha=0.0), limits)
        return best.ids

    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        return score_targets(self.start(source), [target])[0]


class ONNXStep(ArrayStep):
    """A search for one sentence with the exported decoder."""

    def __init__(self, decoder: Any, memory: Sequence[NumPyArray]) -> None:
        super().__init__(1)
        self._decoder = decoder
        keys, values, _ = self._memory = memory
        self._cache = [keys[:, :, :, :0], values[:, :, :, :0]]

    def compute(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> NumPyArray:
        """Return the decoder's log-probabilities; see `ArrayStep.compute`."""
        rows = list(hypotheses)
        keys, values, mask = self._memory
        everyone = [0] * len(rows)  # the decoder takes a memory for each hypothesis; here all have the same source
        memory = keys[:, everyone], values[:, everyone], mask[everyone]
        inputs = np.array(tokens, np.int64), *(part[:, rows] for part in self._cache), *memory
        log_probabilities, *self._cache = self._decoder.run(None, dict(zip(DECODER_INPUTS, inputs, strict=True)))
        return np.array(log_probabilities)


def _write_graphs(bundle: Bundle, folder: Path) -> None:
    """Trace encoder and decoder with a few sentences. In the graphs, numbers of sentences and lengths stay variable."""
    from torch.export import Dim

    model, config = bundle.model, bundle.config
    encoder = ONNXEncoder(model).eval()
    decoder = ONNXDecoderStep(model, banned_ids(bundle)).eval()
    # The exporter could not distinguish axes of equal size.
    width = config.d_model // config.heads
    fixed = {config.heads, config.decoder_layers, config.d_k or width, config.d_v or width}
    free = [size for size in range(3, config.max_length + 1) if size not in fixed]
    # A model of very short sentences leaves no choice of lengths.
    cached, length = free[:2] if len(free) > 1 else (2, 3)
    sentences = next(size for size in count(3) if size not in {*fixed, cached, length})
    source = torch.full((sentences, length), bundle.source_tokenizer.eos_id)
    with torch.no_grad():
        memory_keys, memory_values, mask = encoder(source)
    keys, values = (tensor[:, :, :, :cached].contiguous() for tensor in (memory_keys, memory_values))
    batch_axis, length_axis = Dim("batch"), Dim("source_length", max=config.max_length)
    cached_axis = Dim("cached", max=config.max_length - 1)
    memory_axes, cache_axes = {1: batch_axis, 3: length_axis}, {1: batch_axis, 3: cached_axis}
    memory_names = dict(zip(ENCODER_OUTPUTS, (memory_axes, memory_axes, {0: batch_axis, 1: length_axis}), strict=True))
    encoder_axes = {"source": {0: batch_axis, 1: length_axis}}
    decoder_axes = {"last": {0: batch_axis}, "keys": cache_axes, "values": cache_axes, **memory_names}
    with _constant_angles(model):
        graphs = {
            "encoder.onnx": _trace(encoder, (source,), encoder_axes, ENCODER_OUTPUTS),
            "decoder.onnx": _trace(
                decoder, (source[:, 0], keys, values, memory_keys, memory_values, mask), decoder_axes, DECODER_OUTPUTS
            ),
        }
    for name, program in graphs.items():
        program.model.metadata_props["max_length"] = str(model.config.max_length)
        program.save(str(folder / name))


@contextmanager
def _constant_angles(model: Transformer) -> Iterator[None]:
    """Make rotary positions take their sines and cosines from constants of the graph.

    Otherwise the graph would compute them in float64, which some runtimes lack.
    """
    turns, max_length = rotary.turns, model.config.max_length

    @cache
    def constants(width: int) -> tuple[Tensor, Tensor]:
        cosines, sines = turns(max_length, width, torch.device("cpu"))
        return cosines[:max_length].clone(), sines[:max_length].clone()

    with patch.object(rotary, "turns", lambda length, width, device: constants(width)):
        first = torch.zeros(1, 1, dtype=torch.int64)
        model(first, first)  # so that the tables exist as numbers before a graph is traced
        yield


def _trace(
    module: nn.Module, inputs: tuple[Tensor, ...], axes: dict[str, dict[int, Any]], outputs: Sequence[str]
) -> Any:
    """Trace the graph of a module, with names for its inputs and outputs. The axes in `axes` stay variable."""
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)  # it would report other libraries that are not installed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # caused by the exporter's own use of PyTorch
            return torch.onnx.export(
                module,
                inputs,
                dynamo=True,
                input_names=list(axes),
                output_names=outputs,
                dynamic_shapes=tuple(axes.values()),
                verbose=False,
            )
    finally:
        exporter.setLevel(level)
