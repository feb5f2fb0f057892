"""Compare the native engine with `nn/`, in case somebody has edited the model in memory.

The comparison notices everything that changes the log-probabilities of the forward pass: edited files of `nn/`,
subclasses, hooks and replaced functions. Its sentences have up to 70 tokens, so it misses an edit that only affects
longer sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..errors import AllYouNeedError
from ..fast.comparison import varied_ids
from ..native.engine import NativeEngine
from ..nn import Transformer
from .likelihood import eval_copy

SOURCE_LENGTHS = (66, 3)  # tokens: more than a block of keys in the engine holds, and only a few
TARGET_LENGTH = 70
# In standard deviations of the log-probabilities: far above rounding, far below the effect of an edit.
FLOAT_TOLERANCE = 1e-3
INT8_TOLERANCE = 0.25  # in standard deviations, with int8 weights; int8 rounding is a few percent on average
NEGLIGIBLE = 1e-5  # nats; keeps the comparison meaningful when all log-probabilities are equal except for rounding


@torch.inference_mode()
def difference_from_nn(engine: NativeEngine, weights: Mapping[str, memoryview[Any]], model: Transformer) -> str:
    """Describe how the engine differs from the forward pass of `model`, beyond rounding; "" if it does not.

    Rounding to int8 could hide an edit, so an int8 engine is also compared in float32. A run compares its model at
    every validation; the description contains no numbers, so that Python shows the same warning only once.
    """
    config = model.config
    rng = torch.Generator().manual_seed(0)
    lengths = [min(length, config.max_length) for length in SOURCE_LENGTHS]
    sources = [varied_ids(length, config.vocab_size, config.pad_id, rng) for length in lengths]
    length = min(TARGET_LENGTH, config.max_length)
    pad_id = config.effective_target_pad_id
    targets = torch.stack([varied_ids(length, config.effective_target_vocab_size, pad_id, rng) for _ in sources])
    padded = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=config.pad_id)
    try:
        expected = eval_copy(model)(padded, targets).float().log_softmax(-1)
    except (AllYouNeedError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return f"cannot be compared with nn/ ({type(error).__name__}: {error})"

    deviation = float(expected.std())
    exact = engine if engine.precision == "float32" else NativeEngine(config, weights, "float32")
    difference = float((_log_probabilities(exact, sources, targets) - expected).abs().max())
    if not difference <= max(NEGLIGIBLE, FLOAT_TOLERANCE * deviation):
        return "differs from nn/"
    if exact is engine:
        return ""
    difference = float((_log_probabilities(engine, sources, targets) - expected).square().mean().sqrt())
    return "" if difference <= INT8_TOLERANCE * deviation else "in int8 differs from nn/"


def _log_probabilities(engine: NativeEngine, sources: Sequence[Tensor], targets: Tensor) -> Tensor:
    """Compute the log-probabilities of the next token at every position of the targets. Shapes: (B, T) → (B, T, V)."""
    step = engine.start([source.tolist() for source in sources])
    found = []
    for tokens in targets.T.tolist():
        step(range(len(sources)), tokens)
        found.append(torch.from_numpy(step.log_probabilities().copy()))
    return torch.stack(found, 1)
