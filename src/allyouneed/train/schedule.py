"""The learning rate (§5.3): up in a straight line, then down, by whichever law is chosen."""

import math

from ..config import TrainConfig


def paper_learning_rate(step: int, *, d_model: int, warmup: int) -> float:
    """d_model^−0.5 · min(step^−0.5, step · warmup^−1.5), equation 3; `step` counts from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def cooldown_factor(step: int, *, steps: int, cooldown: int) -> float:
    """What the last `cooldown` of `steps` updates leave of the rate: it falls to zero in a straight line.

    The paper has no such end; a short run gains from one.
    """
    return min(1.0, (steps - step + 1) / (cooldown + 1))


def learning_rate_at(step: int, config: TrainConfig, *, d_model: int) -> float:
    """The rate of update number `step`, from 1, by `config.schedule`.

    "paper" is equation 3 times `config.rate`. For the others `config.rate` is the highest rate
    itself, reached after `config.warmup` updates: then "inverse-sqrt" falls with 1/√step, as the
    paper's does, "cosine" along half a cosine to zero (Loshchilov and Hutter, 2017), and "constant"
    stays. A cooldown comes on top.
    """
    rising = min(1.0, step / config.warmup)
    since = (step - config.warmup) / max(1, config.steps - config.warmup + 1)
    by_schedule = {
        "paper": lambda: paper_learning_rate(step, d_model=d_model, warmup=config.warmup),
        "inverse-sqrt": lambda: min(rising, math.sqrt(config.warmup / step)),
        "cosine": lambda: min(rising, (1 + math.cos(math.pi * max(0.0, since))) / 2),
        "constant": lambda: rising,
    }
    falling = cooldown_factor(step, steps=config.steps, cooldown=config.cooldown)
    return config.learning_rate * by_schedule[config.schedule]() * falling
