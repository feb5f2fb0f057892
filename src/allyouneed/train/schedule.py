"""The learning rate (§5.3): up in a straight line, then down with 1/√step."""


def paper_rate(step: int, *, d_model: int, warmup: int) -> float:
    """d_model^−0.5 · min(step^−0.5, step · warmup^−1.5), equation 3; `step` counts from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def share_left(step: int, *, steps: int, cooldown: int) -> float:
    """What the last `cooldown` of `steps` updates leave of the rate: it falls to zero in a straight line.

    The paper has no such end; a short run gains from one.
    """
    return min(1.0, (steps - step + 1) / (cooldown + 1))
