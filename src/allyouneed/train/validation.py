"""Validation: loss and accuracy on pairs that the model is not trained on."""

import torch

from ..data.batch import batches_by_length
from ..data.pairs import EncodedPairs
from ..nn import Transformer
from .loss import mean_loss

LOGITS_AT_ONCE = 2**26  # numbers in a chunk of logits; training holds more, so validation cannot run out of memory


@torch.inference_mode()
def validate(model: Transformer, pairs: EncodedPairs, *, batch_tokens: int) -> tuple[float, float]:
    """Measure the cross entropy, in nats per target token, and the accuracy in percent, on held-out pairs.

    There is no label smoothing and no dropout. Each token is predicted from the reference tokens before it.
    """
    batch_tokens = max(pairs.longest(), min(batch_tokens, LOGITS_AT_ONCE // model.config.effective_target_vocab_size))
    total = 0.0
    right = 0
    tokens = 0
    pad_id = model.config.effective_target_pad_id
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    for batch in batches_by_length(pairs, batch_tokens=batch_tokens, pad_id=model.config.pad_id, target_pad_id=pad_id):
        batch = batch.to(device)
        is_token = batch.target_out != pad_id
        count = int(is_token.sum())
        logits = model(batch.source, batch.target_in)
        total += mean_loss(logits, batch.target_out, smoothing=0.0, pad_id=pad_id).item() * count
        right += int(((logits.argmax(-1) == batch.target_out) & is_token).sum())
        tokens += count
    model.train(was_training)
    return total / tokens, 100 * right / tokens
