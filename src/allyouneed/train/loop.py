"""The training loop (§5): a generator of updates.

The caller iterates over `updates` and decides between two updates what to do: validate, save, print or stop.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_
from torch.optim import Optimizer

from ..config import TrainConfig
from ..data.batch import Batch
from ..nn import Transformer
from .gradients import Gradients, add_gradients
from .optimizer import step_if
from .schedule import learning_rate_at


@dataclass(frozen=True, slots=True)
class Update:
    """The result of one update: mean loss in nats per token, learning rate, norm of the gradient before clipping.

    If the loss or the gradient is not finite, `is_finite` is False and the weights are unchanged. The tensors stay on
    the device; reading one waits for the device. `tokens` counts the target tokens of this process, with padding.
    """

    step: int
    loss: Tensor
    learning_rate: float
    gradient_norm: Tensor
    is_finite: Tensor
    tokens: int


def updates(
    model: Transformer,
    optimizer: Optimizer,
    batches: Iterable[Batch],
    config: TrainConfig,
    *,
    first: int = 1,
    learning_rate: Callable[[int], float] | None = None,
    gradients: Gradients = add_gradients,
) -> Iterator[Update]:
    """Train `model` (§5): make update number `first` and all later updates, and yield the result of each.

    Ends after update `config.steps`, or earlier if the batches run out. With a time budget the caller stops iterating.
    `learning_rate` maps the number of an update to its learning rate; by default it follows the schedule in `config`.
    `gradients` computes the gradients of an update's batches.
    """
    feed = iter(batches)
    model.train()
    for step in count(first) if config.minutes else range(first, config.steps + 1):
        if not (group := list(islice(feed, config.accumulate_steps))):
            return
        rate = learning_rate(step) if learning_rate else learning_rate_at(step, config, d_model=model.config.d_model)
        set_learning_rate(optimizer, rate)
        loss, norm = gradients(model, group, config)
        if config.clip_norm:
            clip_grads_with_norm_(model.parameters(), config.clip_norm, norm)
        is_finite = (loss + norm).isfinite()
        step_if(is_finite, optimizer)
        optimizer.zero_grad()
        yield Update(step, loss, rate, norm, is_finite, sum(batch.target_out.numel() for batch in group))


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """Set the learning rate of all parameters for the next update."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
