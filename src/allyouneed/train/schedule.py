"""The learning-rate schedule (§5.3): linear warmup, then one of several decays."""

import math

from ..config import TrainConfig


def paper_learning_rate(step: float, *, d_model: int, warmup: int) -> float:
    """Compute the learning rate of equation 3: d_model^−0.5 · min(step^−0.5, step · warmup^−1.5).

    `step` counts from 1.
    """
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def cooldown_factor(step: float, *, steps: int, cooldown: int) -> float:
    """Return a factor that falls linearly from 1 to 0 over the last `cooldown` of `steps` updates.

    The paper has no cooldown, but short runs gain from one.
    """
    return min(1.0, (steps - step + 1) / (cooldown + 1))


def learning_rate_at(step: float, config: TrainConfig, *, d_model: int) -> float:
    """Return the learning rate of update number `step`, counted from 1, for `config.schedule`.

    The learning rate rises linearly to `config.learning_rate` during the first `config.warmup` updates. Then "paper"
    and "inverse-sqrt" fall with 1/√step, "cosine" falls to zero along half a cosine (Loshchilov and Hutter, 2017), and
    "constant" stays. "paper" is equation 3, scaled to peak at `config.learning_rate`, or unscaled if that is 0. Every
    schedule is multiplied by its cooldown factor.

    With a time budget, `step` is a position in the schedule and usually not a whole number. The learning rate then
    always ends at zero: if no cooldown is set, it falls to zero from the end of the warmup on.
    """
    rising = min(1.0, step / config.warmup)
    since = (step - config.warmup) / max(1, config.steps - config.warmup + 1)
    by_schedule = {
        "paper": lambda: paper_learning_rate(step, d_model=d_model, warmup=config.warmup),
        "inverse-sqrt": lambda: min(rising, math.sqrt(config.warmup / step)),
        "cosine": lambda: min(rising, (1 + math.cos(math.pi * max(0.0, since))) / 2),
        "constant": lambda: rising,
    }
    cooldown = config.cooldown
    if config.minutes and not cooldown and config.schedule != "cosine":
        cooldown = max(0, config.steps - config.warmup)
    falling = cooldown_factor(step, steps=config.steps, cooldown=cooldown)
    scale = paper_scale(config, d_model=d_model) if config.schedule == "paper" else config.learning_rate
    return scale * by_schedule[config.schedule]() * falling


def paper_scale(config: TrainConfig, *, d_model: int) -> float:
    """Return the factor by which equation 3 is scaled: `config.learning_rate` divided by its peak.

    Equation 3 peaks at the end of the warmup.
    """
    if not config.learning_rate:
        return 1.0
    peak = paper_learning_rate(config.warmup, d_model=d_model, warmup=config.warmup)
    return float(f"{config.learning_rate / peak:.11g}")  # rounding makes a round learning rate a round multiple
