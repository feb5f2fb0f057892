"""The training loop (§5): a generator of updates.

The caller that iterates over `updates` decides what happens between two of them: validate, save, print, stop.
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
    """One update: mean loss in nats per token, learning rate, norm of the gradient before clipping.

    `is_finite` is False where loss or gradient was not finite, so that the weights stayed as they were. The tensors are
    still on the device. `tokens` counts the target tokens of this process, padding included.
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
    """Fit `model` (§5): make update number `first` and the following ones, and yield each when it is done.

    The last is number `config.steps`, unless the batches end before; with a time budget, the caller stops.
    `learning_rate` maps an update's number to its rate; by default it is the schedule of `config`. `gradients` computes
    the gradients of the batches of an update.
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
