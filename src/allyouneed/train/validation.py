"""How well a model foretells pairs it was not trained on."""

import torch

from ..data.sampler import batches_by_length
from ..data.store import EncodedPairs
from ..nn import Transformer
from .loss import mean_loss

LOGITS_AT_ONCE = 2**26  # numbers: what a training step never holds is not to be what memory runs out on


@torch.inference_mode()
def validate(model: Transformer, pairs: EncodedPairs, *, batch_tokens: int) -> tuple[float, float]:
    """The mean cross entropy over the words of some pairs, in nats a token, and the share foretold right, in percent.

    Without label smoothing and without dropout; each word follows the reference's words before it.
    """
    longest = max(pairs.source.length_quantile(1), pairs.target.length_quantile(1))
    batch_tokens = max(longest, min(batch_tokens, LOGITS_AT_ONCE // model.config.effective_target_vocab_size))
    total, right, words = 0.0, 0, 0
    pad_id, device = model.config.effective_target_pad_id, next(model.parameters()).device
    was_training = model.training
    model.eval()
    for batch in batches_by_length(pairs, batch_tokens=batch_tokens, pad_id=model.config.pad_id, target_pad_id=pad_id):
        batch = batch.to(device)
        is_word = batch.target_out != pad_id
        count = int(is_word.sum())
        logits = model(batch.source, batch.target_in)
        total += mean_loss(logits, batch.target_out, smoothing=0.0, pad_id=pad_id).item() * count
        right += int(((logits.argmax(-1) == batch.target_out) & is_word).sum())
        words += count
    model.train(was_training)
    return total / words, 100 * right / words
