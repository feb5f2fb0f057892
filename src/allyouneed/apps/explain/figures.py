"""Figures of a trace, one function each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .draw import (
    BLUE,
    COLOURS,
    GREEN,
    MONOSPACE,
    ORANGE,
    SHARES,
    SIGNED,
    attention_figure,
    label_columns,
    matrix,
    new_figure,
    turned,
)
from .search_trace import Prefix, with_parents
from .trace import Trace, alignment_matrix, attention_label, attention_tokens, attentions, residual_stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BRANCHES = 40  # prefixes of the search tree that are drawn
LEAST_WEIGHT = 0.08  # smallest weight that an alignment draws, besides the largest one of each target token


def embedding_figure(trace: Trace) -> "Figure":
    """Draw embedding, position and their sum for every source token, in the first 32 dimensions."""
    names = ("embedding", "position", "sum")
    parts = [trace.recording[f"source.{name}"][:, :32] for name in names]
    reach = float(max(part.abs().max() for part in parts))
    rows = len(trace.source_pieces)
    figure = new_figure(9.5, max(2.4, 0.2 * rows + 1.3))
    panels = figure.subplots(1, 3, sharey=True)
    titles = ("√d_model · embedding", "+ position", "= input of the encoder")
    for axes, part, title in zip(panels, parts, titles, strict=True):
        image = matrix(axes, part, low=-reach, high=reach, colours=SIGNED)
        axes.set(title=title, xlabel="dimension")
    panels[0].set_yticks(range(rows), trace.source_pieces, family=MONOSPACE, fontsize=8, parse_math=False)
    figure.colorbar(image, ax=panels, shrink=0.8)
    return figure


def stream_figure(trace: Trace) -> "Figure":
    """Draw the mean norm of the residual stream after each sublayer, and how much each sublayer changes the stream."""
    figure = new_figure(9.5, 5.6)
    panels = figure.subplots(2, 2, sharey="row", squeeze=False)
    for column, stack in enumerate(("encoder", "decoder")):
        stages = residual_stream(trace, stack)
        names = [stage.part for stage in stages]
        above, below = panels[0][column], panels[1][column]
        above.plot(names, [stage.norm for stage in stages], "o-", color=BLUE, linewidth=2)
        above.set_title(f"{stack}: mean norm")
        above.set_xticks(range(len(names)), [""] * len(names))
        below.bar(names, [stage.change for stage in stages], color=ORANGE)
        below.set_title(f"{stack}: relative change")
        below.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    panels[0][0].set_ylim(0, 1.1 * panels[0][0].get_ylim()[1])
    return figure


def lens_figure(trace: Trace) -> "Figure":
    """Draw the logit lens: the most probable tokens, with probabilities, as if each decoder layer were the last."""
    layers = [
        x for name, x in trace.recording.items() if name.startswith("decoder.layers.") and name.endswith(".logits")
    ]
    columns = len(trace.decoder_targets)
    probabilities, tokens = torch.stack(layers).softmax(-1).max(-1)
    wide = 0.06 + 0.07 * max(len(trace.pieces.get(int(i), "")) for i in tokens.flatten())
    figure = new_figure(max(4.0, wide * columns + 1.6), 0.45 * len(layers) + 1.7)
    axes = figure.subplots()
    image = matrix(axes, probabilities, low=0, high=1, colours=SHARES)
    for row in range(len(layers)):
        for column in range(columns):
            piece = trace.pieces.get(int(tokens[row, column]), "?")
            colour = "#111111" if probabilities[row, column] > 0.55 else "#fefefe"
            axes.text(
                column, row, piece, ha="center", va="center", color=colour, fontsize=8, family=MONOSPACE,
                parse_math=False,
            )  # fmt: skip
    axes.set_yticks(range(len(layers)), [f"after layer {i + 1}" for i in range(len(layers))])
    label_columns(axes, trace.decoder_targets)
    axes.set_xlabel("predicted token")
    figure.colorbar(image, ax=axes, label="probability", aspect=10)
    return figure


def alignment_figure(trace: Trace) -> "Figure":
    """Draw lines from each target token to the source tokens that it attends to: weights above 8 %, and the largest."""
    weights = alignment_matrix(trace)
    most = max(len(trace.source_pieces), len(trace.decoder_targets))
    figure = new_figure(max(5.0, 0.42 * most), 3.2)
    axes = figure.subplots()
    above = [(i + 0.5) * most / len(trace.source_pieces) for i in range(len(trace.source_pieces))]
    below = [(t + 0.5) * most / len(trace.decoder_targets) for t in range(len(trace.decoder_targets))]
    for t, row in enumerate(weights):
        for i, weight in enumerate(row.tolist()):
            if weight > LEAST_WEIGHT or i == int(row.argmax()):
                strength = max(0.2, min(1.0, weight))
                axes.plot([above[i], below[t]], [0.86, 0.14], color=BLUE, alpha=strength, linewidth=4 * strength)
    style: Any = {"ha": "center", "family": MONOSPACE, "fontsize": 10}
    for x, piece in zip(above, trace.source_pieces, strict=True):
        axes.text(x, 0.9, piece, va="bottom", parse_math=False, rotation=turned(piece), **style)
    for x, piece in zip(below, trace.decoder_targets, strict=True):
        axes.text(x, 0.1, piece, va="top", parse_math=False, rotation=turned(piece), **style)
    axes.set(xlim=(0, most), ylim=(-0.3, 1.3))
    axes.axis("off")
    figure.suptitle("input (is looked at)", fontsize=10)
    figure.supxlabel("output (asks)", fontsize=10)
    return figure


def tree_figure(trace: Trace) -> "Figure":
    """Draw the search as a tree of all expanded prefixes, with the translation in another colour."""
    answer = tuple(trace.search.hypothesis.ids)
    branches = trace.search.ranked()
    kept = with_parents(branches[: MAX_BRANCHES + len(answer)])
    rows = _rows(kept, answer)
    deepest = max(map(len, kept))
    piece = max((len(trace.pieces.get(b[-1], "")) for b in kept if b), default=1)
    wide = 0.3 + 0.08 * piece
    figure = new_figure(max(5.0, wide * (deepest + 2)), 0.3 * (max(rows.values()) + 1) + 1.0)
    axes = figure.subplots()
    for prefix in kept:
        right = answer[: len(prefix)] == prefix
        x, y = len(prefix), rows[prefix]
        colour = GREEN if right else "#888888"
        if prefix:
            start = 0.45
            if x > 1:
                start = x - 0.95 + 0.08 * len(trace.pieces.get(prefix[-2], "?")) / wide
            axes.plot([start, x - 0.05], [rows[prefix[:-1]], y], color=colour, linewidth=2.5 if right else 1)
        label = trace.pieces.get(prefix[-1], "?") if prefix else "<sos>"
        axes.text(
            x or 0.4, y, label, ha="left" if x else "right", va="center", fontsize=8, family=MONOSPACE,
            parse_math=False, color=GREEN if right else "#888888", weight="bold" if right else "normal",
        )  # fmt: skip
    occupied = {(len(prefix), row) for prefix, row in rows.items()}
    for sentence, score in list(trace.search.ended().items())[: trace.search.config.beam]:
        if sentence in rows:
            below = (len(sentence) + 1, rows[sentence]) in occupied  # a longer hypothesis continues in this row
            behind = 0.0 if below else 0.15 + 0.08 * len(trace.pieces[sentence[-1]]) / wide
            label = f"end {round(score, 2) + 0.0:.2f}".replace("-", "−")  # no −0.00
            left, middle = len(sentence) + behind, rows[sentence] + 0.45 * below
            axes.text(left, middle, label, va="center", fontsize=8, color=COLOURS[5])
    if len(kept) < len(branches):
        axes.set_title(f"the {len(kept)} most probable of {len(branches)} prefixes", loc="left", fontsize=9)
    axes.set(xlim=(-0.8, deepest + 2), ylim=(max(rows.values()) + 0.7, -0.7))
    axes.axis("off")
    return figure


def _rows(kept: list[Prefix], answer: Prefix) -> dict[Prefix, int]:
    """Assign a row to every prefix. The translation gets the first row, and a first child its parent's row."""
    children: dict[Prefix, list[Prefix]] = {branch: [] for branch in kept}
    for branch in kept:
        if branch:
            children[branch[:-1]].append(branch)
    rows: dict[Prefix, int] = {}
    last = 0
    waiting: list[tuple[Prefix, bool]] = [((), True)]
    while waiting:
        branch, shares = waiting.pop()
        if not shares:
            last += 1
        rows[branch] = last
        inside = sorted(children[branch], key=lambda child: answer[: len(child)] != child)
        waiting += [(child, child is inside[0]) for child in reversed(inside)]
    return rows


def attention_figures(trace: Trace) -> "dict[str, Figure]":
    """Draw a figure for every attention of the model."""
    figures = {}
    for name, weights in attentions(trace).items():
        rows, columns = attention_tokens(trace, name)
        figure = attention_figure(weights, source=columns, target=rows, title=attention_label(name))
        figures[name.replace(".layers.", "-").replace(".", "-")] = figure
    return figures


FIGURES: "dict[str, Callable[[Trace], Figure]]" = {
    "embedding": embedding_figure,
    "tree": tree_figure,
    "alignment": alignment_figure,
    "stream": stream_figure,
    "lens": lens_figure,
}
