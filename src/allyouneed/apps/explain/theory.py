"""Figures that need no model: positions, the learning rate, the masks."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ...nn import causal_mask, padding_mask, sinusoids
from ...train.schedule import paper_learning_rate
from .draw import COLOURS, MONOSPACE, SHARES, SIGNED, matrix, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle


def positions_figure(*, length: int = 64, d_model: int = 64) -> "Figure":
    """Draw the sines and cosines (§3.5). A shift by k positions is the same rotation at every position."""
    encoding = sinusoids(length, d_model)
    figure = new_figure(9.5, 3.6)
    table, clock, similarity = figure.subplots(1, 3, width_ratios=[1.5, 1, 1.2])
    image = matrix(table, encoding, low=-1, high=1, colours=SIGNED)
    table.set(title="sines and cosines", xlabel="dimension", ylabel="position")
    figure.colorbar(image, ax=table, shrink=0.7)

    pair, step = round(0.09 * d_model), 5  # a frequency at which the rotation is visible
    hands = encoding[:, 2 * pair : 2 * pair + 2]
    angle = math.degrees(math.atan2(*hands[step].tolist()))
    clock.set(
        title=f"dimensions {2 * pair} and {2 * pair + 1}:\n+{step} positions is always\nthe same turn ({angle:.0f}°)",
        aspect="equal",
    )
    clock.add_patch(_circle())
    for start, colour in zip((0, 10, 20), COLOURS, strict=False):
        for position, style in ((start, "-"), (start + step, "--")):
            sine, cosine = hands[position].tolist()
            clock.plot([0, cosine], [0, sine], style, color=colour, linewidth=2)
            clock.text(1.2 * cosine, 1.2 * sine, str(position), ha="center", va="center", fontsize=9)
    clock.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    clock.axis("off")

    for start, colour in zip((0, 10, 20, 30), COLOURS, strict=False):
        products = encoding[start : start + 30] @ encoding[start]
        similarity.plot(products, color=colour, linewidth=10 - start / 3.6, label=f"from {start}")
    similarity.set(title="PE(p) · PE(p + k)\ndepends on k alone", xlabel="k")
    similarity.legend(frameon=False, fontsize=8)
    return figure


def rotation(step: int, d_model: int) -> torch.Tensor:
    """Return the matrix R, (D, D), with PE(p + step) = R PE(p) for every p: 2 × 2 rotations along the diagonal."""
    sine, cosine = sinusoids(step + 1, d_model)[step].view(-1, 2).T
    even = torch.arange(0, d_model, 2)
    turn = torch.zeros(d_model, d_model)
    turn[even, even], turn[even, even + 1] = cosine, sine
    turn[even + 1, even], turn[even + 1, even + 1] = -sine, cosine
    return turn


def schedule_figure(*, steps: int = 20_000) -> "Figure":
    """Draw the learning rate (§5.3, equation 3) for three widths and warmups."""
    figure = new_figure(7, 3.6)
    axes = figure.subplots()
    at = range(1, steps + 1, max(1, steps // 500))
    for (d_model, warmup, style), colour in zip(
        ((512, 4_000, "-"), (512, 8_000, "--"), (256, 4_000, "-")), COLOURS, strict=False
    ):
        rates = [1e4 * paper_learning_rate(step, d_model=d_model, warmup=warmup) for step in at]
        axes.plot(at, rates, style, color=colour, linewidth=2, label=f"d_model {d_model}, warmup {warmup:,}")
        axes.plot(warmup, max(rates), "o", color=colour)
    axes.set(title="linear warmup, then 1/√step", xlabel="update", ylabel="learning rate, in 10⁻⁴", ylim=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False)
    return figure


def masks_figure() -> "Figure":
    """Draw the causal mask (§3.2.3), the padding mask, and both combined."""
    tokens = ["<sos>", "January", "5", ",", "1845", "<pad>", "<pad>"]
    future = causal_mask(len(tokens))
    padding = padding_mask(torch.tensor([[1, 2, 3, 4, 5, 0, 0]]), 0)[0, 0].expand(len(tokens), -1)
    figure = new_figure(9.5, 3.9)
    panels = figure.subplots(1, 3, sharey=True)
    titles = (
        "causal_mask: a token attends\nto itself and earlier tokens",
        "padding_mask: no token\nattends to padding",
        "both combined",
    )
    for axes, mask, title in zip(panels, (future, padding, future & padding), titles, strict=True):
        matrix(axes, mask.float() * 0.8 + 0.1, low=0, high=1, colours=SHARES)
        axes.set_title(title, fontsize=10)
        axes.set_xticks(range(len(tokens)), tokens, rotation=90, family=MONOSPACE, fontsize=9)
        axes.set_yticks(range(len(tokens)), tokens, family=MONOSPACE, fontsize=9)
        for row in range(len(tokens)):
            for column in range(len(tokens)):
                if mask[row, column]:
                    axes.plot(column, row, "o", color="#333333", markersize=3)
    panels[0].set_ylabel("query")
    for axes in panels:
        axes.set_xlabel("key")
    return figure


def _circle() -> "Circle":
    from matplotlib.patches import Circle

    return Circle((0, 0), 1, fill=False, color="#888888", linewidth=0.8)


THEORY: "dict[str, Callable[[], Figure]]" = {
    "positions": positions_figure,
    "schedule": schedule_figure,
    "masks": masks_figure,
}
