"""Compare the native engine with `nn/`, for a model in memory that somebody may have edited.

Edits of the files of `nn/`, subclasses, hooks and replaced functions are seen alike: whatever makes the forward pass
compute other log-probabilities. The sentences have up to 70 tokens: an edit that acts only on longer ones is not seen.
"""

import torch
from torch import Tensor

from ..errors import AllYouNeedError
from ..native.engine import NativeEngine
from ..nn import Transformer
from .likelihood import eval_copy

SOURCE_LENGTHS = (66, 3)  # tokens: one longer than a column of keys, one short
TARGET_LENGTH = 70
FLOAT_TOLERANCE = 1e-3  # of the standard deviation: far above rounding, far below an edit
INT8_TOLERANCE = 0.25  # the same in int8, whose rounding is a few percent, as a mean
NEGLIGIBLE = 1e-5  # nats: log-probabilities that are all alike but for rounding differ by more than their deviation


@torch.inference_mode()
def difference_from_nn(engine: NativeEngine, model: Transformer) -> str:
    """Return in words how the engine differs from `Transformer.forward` beyond rounding; "" if it does not."""
    config = model.config
    rng = torch.Generator().manual_seed(0)
    sources = [_ids(min(length, config.max_length), config.vocab_size, config.pad_id, rng) for length in SOURCE_LENGTHS]
    length = min(TARGET_LENGTH, config.max_length)
    pad_id = config.effective_target_pad_id
    targets = [_ids(length, config.effective_target_vocab_size, pad_id, rng) for _ in sources]
    try:
        padded = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=config.pad_id)
        expected = eval_copy(model)(padded, torch.stack(targets)).float().log_softmax(-1)
    except (AllYouNeedError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return f"has no such sentences ({type(error).__name__}: {error})"

    step = engine.start([source.tolist() for source in sources])
    found = []
    for tokens in torch.stack(targets, 1).tolist():
        step(range(len(sources)), tokens)
        found.append(torch.from_numpy(step.log_probabilities().copy()))
    differences = (torch.stack(found, 1) - expected).double()
    if engine.precision == "int8":
        distance, tolerance = float(differences.square().mean().sqrt()), INT8_TOLERANCE
    else:
        distance, tolerance = float(differences.abs().max()), FLOAT_TOLERANCE
    deviation = float(expected.double().std())
    if distance <= max(NEGLIGIBLE, tolerance * deviation):
        return ""
    share = distance / max(deviation, NEGLIGIBLE)
    return f"gives other log-probabilities than Transformer.forward, by {share:.1%} of their deviation"


def _ids(count: int, vocab_size: int, pad_id: int, rng: torch.Generator) -> Tensor:
    """Draw ids other than `pad_id`, among them the lowest and the highest, as special tokens are."""
    edges = torch.tensor([*range(vocab_size - 1)[:4], *range(vocab_size - 1)[-4:]], dtype=torch.int64)
    ids = torch.cat((edges, torch.randint(0, max(1, vocab_size - 1), (count,), generator=rng)))[:count]
    return ids + (ids >= pad_id)
