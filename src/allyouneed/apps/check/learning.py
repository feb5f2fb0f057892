"""Check that a model of these sizes can learn at all, with new weights."""

import math

import torch
from torch import Tensor
from torch.optim import Adam

from ...config import ModelConfig
from ...decode import SearchLimits, greedy_search
from ...nn import Transformer
from ...train.loss import mean_loss
from ...translator.definition import DefinitionEngine
from .model import CheckError, CheckResult, Ids, named_check, outcome

MAX_UPDATES = 300  # most models need 30 to 80
LEARNED = 0.05  # nats per token
WARMUP = 20  # updates
NO_PROGRESS_AFTER = 100  # updates; a model that has not lost a third of its first loss by then does not learn


@named_check("start")
def initial_loss_is_log_vocabulary(model: Transformer, ids: Ids) -> str:
    """Check that an untrained model gives all tokens about the same probability, so that its loss is near ln V."""
    with torch.inference_mode():
        loss = _loss(model.eval(), ids).item()
    vocabulary = model.config.effective_target_vocab_size
    uniform = math.log(vocabulary)
    if abs(loss - uniform) > 0.25 * uniform + 0.5:
        raise CheckError(
            f"the loss of an untrained model is {loss:.2f} nats per token; equal probabilities for all {vocabulary:,} "
            f"tokens would give ln V = {uniform:.2f}: the initial weights have a wrong scale."
        )
    return f"loss of an untrained model: {loss:.2f} nats per token; ln V = {uniform:.2f}"


def memorizes_a_batch(model: Transformer, ids: Ids) -> list[CheckResult]:
    """Check that a new model can memorize a few sentences, and that greedy search then writes them.

    The greedy search reveals shifted labels: a model trained to repeat its input token also has a small loss, but wrong
    translations. `model` is trained in place.
    """
    memorized = outcome("memorize", _memorize, model, ids)
    if memorized.passed:
        return [memorized, outcome("labels", _write_memorized, model, ids)]
    return [memorized, CheckResult("labels", None, "not tried: the model memorized nothing")]


def _memorize(model: Transformer, ids: Ids) -> str:
    loss, updates = _train(model.eval(), ids)  # no dropout
    if not loss <= LEARNED:  # the loss may be NaN
        raise CheckError(
            f"after {updates} updates on {len(ids.sources)} sentences the loss is still {loss:.2f} nats per token: "
            "gradients do not reach the weights, or training diverges."
        )
    return f"{len(ids.sources)} sentences memorized in {updates} updates, loss {loss:.3f}"


@torch.inference_mode()
def _write_memorized(model: Transformer, ids: Ids) -> str:
    hypotheses = greedy_search(
        DefinitionEngine(model).start(ids.sources, banned_ids=(model.config.effective_target_pad_id, ids.sos_id)),
        SearchLimits(sos_id=ids.sos_id, eos_id=ids.eos_id, max_lengths=list(map(len, ids.targets))),
    )
    right = sum(one.ids == target[1:-1] for one, target in zip(hypotheses, ids.targets, strict=True))
    summary = f"greedy search writes {right} of {len(hypotheses)} memorized sentences"
    if 2 * right < len(hypotheses):  # with shifted labels none is right; a sound model may miss one by a token
        raise CheckError(
            f"{summary}: the labels are shifted. The decoder reads token t and must predict token t + 1 "
            "(data/batch.py)."
        )
    return summary


def memorizing_learning_rate(config: ModelConfig) -> float:
    """Return the learning rate that memorizes fastest, as measured with 2 + 2, 6 + 6 and 8 + 8 layers.

    This learning rate falls with 1/√d_model. For deep stacks with norm "post" it also falls with the square of the
    depth.
    """
    depth = config.encoder_layers + config.decoder_layers
    factor = min(0.01, 0.7 / depth**2) if config.norm == "post" else 0.01
    return factor / math.sqrt(config.d_model)


def _train(model: Transformer, ids: Ids) -> tuple[float, int]:
    """Train until the batch is memorized or learning has stopped. Returns the last loss and the number of updates."""
    peak = memorizing_learning_rate(model.config)
    optimizer = Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), fused=True)
    first = math.inf
    for update in range(1, MAX_UPDATES + 1):
        for group in optimizer.param_groups:
            group["lr"] = peak * min(1.0, update / WARMUP)
        loss = _loss(model, ids)
        value = loss.item()
        first = value if update == 1 else first
        diverges = not value < 4 * first  # NaN counts as well
        stuck = update == NO_PROGRESS_AFTER and value > first * 2 / 3
        if value < LEARNED or not loss.requires_grad or diverges or stuck:
            break
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    return value, update


def _loss(model: Transformer, ids: Ids) -> Tensor:
    batch = ids.batch(model.config)
    logits = model(batch.source, batch.target_in)
    return mean_loss(logits, batch.target_out, smoothing=0.0, pad_id=model.config.effective_target_pad_id)
