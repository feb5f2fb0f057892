"""Can a model of these sizes learn at all? Tried on a new one, with new weights."""

import copy
import math

import torch
from torch import Tensor
from torch.optim import Adam

from ..data.batch import pad
from ..decode import greedy_search, make_step
from ..nn import Transformer
from ..train.loss import mean_loss
from .result import CheckResult, Ids

UPDATES = 300  # at most; most models need a quarter of them
BY_HEART = 0.05  # nats a token
RATES = {0.01: 20, 0.0025: 60}  # over √d_model, and updates of warm-up; the second for what the first is too hot for
GIVEN_UP = 60  # updates after which a rate is given up if a third of the first loss is not gone


def loss_starts_at_guessing(model: Transformer, ids: Ids) -> CheckResult:
    """Before it learns, a model guesses: the loss of a new one is near ln V."""
    with torch.inference_mode():
        loss = _loss(model.eval(), ids).item()
    guessing = math.log(model.config.effective_target_vocab_size)
    if abs(loss - guessing) > 0.25 * guessing + 0.5:
        return CheckResult(
            "start", False,
            f"an untrained model has a loss of {loss:.2f} nats a token, but guessing among "
            f"{model.config.effective_target_vocab_size:,} words costs ln V = {guessing:.2f}: "
            "weights start at a wrong scale.",
        )  # fmt: skip
    return CheckResult("start", True, f"an untrained model loses {loss:.2f} nats a token, near ln V = {guessing:.2f}")


def a_batch_is_learned_by_heart(model: Transformer, ids: Ids) -> list[CheckResult]:
    """A new model can learn a few sentences by heart, and then write them without being shown them.

    The second shows a shift of the labels: a model taught to repeat the word it is given learns
    that well, but writes nonsense. `model` is changed.
    """
    loss, updates = _learn(model.eval(), ids)  # no dropout
    if not loss <= BY_HEART:  # it may be NaN
        stuck = f"after {updates} updates on {len(ids.sources)} sentences the loss is still {loss:.2f} nats a token: "
        return [
            CheckResult("by heart", False, stuck + "gradients do not reach the weights, or steps are far too large."),
            CheckResult("labels", None, "not tried, since nothing was learned by heart"),
        ]
    by_heart = CheckResult(
        "by heart", True, f"{len(ids.sources)} sentences learned by heart in {updates} updates, loss {loss:.3f}"
    )
    with torch.inference_mode():
        found = greedy_search(
            make_step(model, banned_ids=(model.config.pad_id, ids.sos_id)),
            model.start(pad(ids.sources, model.config.pad_id)),
            sos_id=ids.sos_id, eos_id=ids.eos_id,
            max_lengths=torch.tensor([len(target) for target in ids.targets]),
        )  # fmt: skip
    right = sum(one.ids == target[1:-1] for one, target in zip(found, ids.targets, strict=True))
    if 2 * right < len(found):  # a model whose labels are shifted writes none; one that is nearly there misses one
        return [
            by_heart,
            CheckResult(
                "labels", False,
                f"of {len(found)} sentences learned by heart only {right} are written again: the labels are shifted. "
                "At place t the decoder is given word t and must be asked for word t + 1 (data/batch.py).",
            ),
        ]  # fmt: skip
    return [
        by_heart,
        CheckResult("labels", True, f"{right} of {len(found)} sentences learned by heart are written again"),
    ]


def _learn(model: Transformer, ids: Ids) -> tuple[float, int]:
    """The last loss and the updates it took, at the first rate that brings it down; deep "post" wants the lower one."""
    new = copy.deepcopy(model.state_dict())
    for rate, warmup in RATES.items():
        model.load_state_dict(new)
        loss, updates = _learn_at(rate, warmup, model, ids)
        if loss < BY_HEART:
            break
    return loss, updates


def _learn_at(rate: float, warmup: int, model: Transformer, ids: Ids) -> tuple[float, int]:
    optimizer = Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), fused=True)
    first = loss = math.inf
    for update in range(1, UPDATES + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * model.config.d_model**-0.5 * min(1.0, update / warmup)
        now = _loss(model, ids)
        loss = now.item()
        first = loss if update == 1 else first
        too_hot = update == GIVEN_UP and not loss <= first * 2 / 3
        if loss < BY_HEART or not now.requires_grad or too_hot:
            return loss, update
        torch.autograd.backward(now)
        optimizer.step()
        optimizer.zero_grad()
    return loss, UPDATES


def _loss(model: Transformer, ids: Ids) -> Tensor:
    batch = ids.batch(model.config.pad_id)
    logits = model(batch.source, batch.target_in)
    return mean_loss(logits, batch.target_out, smoothing=0.0, pad_id=model.config.pad_id)
