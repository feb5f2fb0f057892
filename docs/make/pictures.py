"""The pictures of the walk-through: python docs/make/pictures.py [BUNDLE]

Writes docs/pictures/*.svg. The curves come from docs/make/ablations.json, which `ablations.py` measures.
The pictures of one date in a model are drawn from BUNDLE; without BUNDLE they stay as they are, unless one
is missing: then they are drawn from the bundle of `allyouneed try`. (Another processor gives other last digits.)
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from by_hand import DRAWINGS
from drawing import Drawing
from figure_1 import figure_1
from matplotlib.figure import Figure
from story import STORY

from allyouneed import Translator
from allyouneed.apps.cli.demo import DATE_MODEL
from allyouneed.apps.explain import FIGURES, THEORY, Trace, save, trace_translation
from allyouneed.apps.explain.draw import (
    BLUE,
    COLOURS,
    GREEN,
    ORANGE,
    SHARES,
    attention_figure,
    label_columns,
    matrix,
    new_figure,
)
from allyouneed.apps.explain.trace import attentions
from allyouneed.machine.files import write_whole

TEXT = "1845-01-05"
HERE = Path(__file__).parent
PICTURES = HERE.parent / "pictures"


def one_look(trace: Trace) -> Figure:
    """Draw equation 1 for one place: its scores for every key, and the softmax of them."""
    weights = attentions(trace)["decoder.layers.1.cross_attention"]
    row = trace.decoder_targets.index("5")  # the day
    figure = new_figure(7.5, 2.6)
    axes = figure.subplots()
    wide = 0.8 / len(weights)
    for head, of_head in enumerate(weights):
        places = [i + (head - len(weights) / 2) * wide for i in range(len(trace.source_pieces))]
        axes.bar(places, of_head[row].tolist(), width=wide, color=COLOURS[head], label=f"head {head + 1}", align="edge")
    axes.set_xticks(range(len(trace.source_pieces)), trace.source_pieces, family="monospace")
    axes.set(
        title=f"before it writes “{trace.decoder_targets[row]}”, the decoder attends to", ylabel="weight", ylim=(0, 1)
    )
    axes.legend(frameon=False)
    return figure


def hidden_units(trace: Trace) -> Figure:
    """Draw the units of one feed-forward network: most are silent, each fires for some letters."""
    hidden = trace.recording["encoder.layers.0.feed_forward.hidden"][:, :96]
    figure = new_figure(8.5, 2.8)
    axes = figure.subplots()
    image = matrix(axes, hidden, low=0, high=float(hidden.max()), colours=SHARES)
    axes.set_yticks(range(len(trace.source_pieces)), trace.source_pieces, family="monospace", fontsize=8)
    silent = 100 * float((hidden == 0).float().mean())
    axes.set(title=f"after the ReLU: {silent:.0f} % are zero (the first 96 of 256 units)", xlabel="unit")
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def normalized(trace: Trace) -> Figure:
    """Draw one vector before and after layer normalization: the same shape, mean 0 and variance 1."""
    before = trace.recording["source.sum"][1] + trace.recording["encoder.layers.0.attention.output"][1]
    after = (before - before.mean()) / before.var(unbiased=False).sqrt()
    figure = new_figure(8.5, 2.8)
    for axes, values, colour, name in zip(
        figure.subplots(1, 2, sharey=True), (before, after), (ORANGE, BLUE), ("before", "after"), strict=True
    ):
        axes.bar(range(len(values)), values.tolist(), color=colour)
        title = f"{name}: mean {values.mean():+.2f}, variance {values.var(unbiased=False):.2f}"
        axes.set(title=title, xlabel="dimension")
    return figure


def logits(trace: Trace) -> Figure:
    """Draw the probabilities that the projection gives at every position, of the most probable characters."""
    probabilities = trace.recording["logits"].softmax(-1)
    likely = sorted({int(i) for i in probabilities.topk(2).indices.flatten()})
    figure = new_figure(8.5, 4.0)
    axes = figure.subplots()
    image = matrix(axes, probabilities[:, likely].T, low=0, high=1, colours=SHARES)
    label_columns(axes, trace.decoder_inputs)
    axes.set_yticks(range(len(likely)), [trace.pieces.get(i, "?") for i in likely], family="monospace", fontsize=8)
    axes.set(xlabel="given", title="probability of the next character")
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def smoothing() -> Figure:
    """Draw the target of one place, plain and smoothed (§5.4)."""
    figure = new_figure(6, 2.6)
    axes = figure.subplots()
    plain, smooth = torch.zeros(10), torch.full((10,), 0.1 / 10)
    plain[3], smooth[3] = 1, 0.9 + 0.1 / 10
    axes.bar([i - 0.2 for i in range(10)], plain.tolist(), width=0.4, color=BLUE, label="ε = 0")
    axes.bar([i + 0.2 for i in range(10)], smooth.tolist(), width=0.4, color=ORANGE, label="ε = 0.1")
    axes.set(xlabel="token of a vocabulary of ten", ylabel="target")
    axes.legend(frameon=False)
    return figure


def products() -> Figure:
    """Draw products of random queries and keys, narrow and wide; as they are, and divided."""
    figure = new_figure(8.5, 3.0)
    drawn = torch.Generator().manual_seed(1)
    for axes, d_k in zip(figure.subplots(1, 2, sharey=True), (4, 64), strict=True):
        query, key = torch.randn(2, 20_000, d_k, generator=drawn)
        scores = (query * key).sum(-1)
        for values, colour, name in ((scores, ORANGE, "q · k"), (scores / d_k**0.5, BLUE, "q · k / √d_k")):
            axes.hist(values.tolist(), bins=60, range=(-30, 30), density=True, color=colour, alpha=0.6, label=name)
        axes.set(title=f"d_k = {d_k}", xlabel="score", yticks=[])
        axes.legend(frameon=False)
    return figure


def curves(names: list[str]) -> Figure:
    """Draw how the date task is learned with one part left out, next to the whole model."""
    measured = json.loads((HERE / "ablations.json").read_text())
    figure = new_figure(8.5, 3.0)
    exact, loss = figure.subplots(1, 2)
    for name, colour in zip(["as in the paper", *names], (GREEN, *[c for c in COLOURS if c != GREEN]), strict=False):
        steps = [point["step"] for point in measured[name]]
        style = {"color": colour, "linewidth": 2 if name in names else 6, "alpha": 1 if name in names else 0.6}
        exact.plot(steps, [point["exact"] for point in measured[name]], label=name, **style)
        loss.plot(steps, [point["valid"] for point in measured[name]], **style)
    exact.set(title="dates that are right, %", xlabel="update", ylim=(-3, 103))
    loss.set(title="validation loss, nats per character", xlabel="update", yscale="log")
    figure.legend(*exact.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


CURVES = {
    "without-positions": ["without positions"],
    "without-scaling": ["embedding not scaled", "attention not scaled"],
    "without-masks": ["without the mask over the future", "without the mask over padding"],
    "norm-elsewhere": ["norm before (pre)", "without norm", "without residual"],
    "one-head": ["one head"],
    "without-feed-forward": ["without the feed-forward networks", "without the ReLU"],
    "without-memory": ["without the memory"],
    "three-tables": ["three tables"],
    "with-smoothing": ["with label smoothing"],
}


def build_attention(name: str, *, rows: str, columns: str) -> Callable[[Trace], Figure]:
    """Make a function that draws one attention; `rows` and `columns` name the pieces that label it."""
    return lambda trace: attention_figure(
        attentions(trace)[name], source=getattr(trace, columns), target=getattr(trace, rows)
    )


OF_A_MODEL: dict[str, Callable[[Trace], Figure]] = FIGURES | {
    "encoder-attention": build_attention("encoder.layers.0.attention", rows="source_pieces", columns="source_pieces"),
    "self-attention": build_attention(
        "decoder.layers.0.self_attention", rows="decoder_inputs", columns="decoder_inputs"
    ),
    "cross-attention": build_attention(
        "decoder.layers.1.cross_attention", rows="decoder_targets", columns="source_pieces"
    ),
    "one-look": one_look,
    "hidden": hidden_units,
    "normalized": normalized,
    "logits": logits,
}
OF_RECORDS: dict[str, Callable[[], Figure]] = (
    THEORY
    | {"smoothing": smoothing, "products": products}
    | {name: lambda names=names: curves(names) for name, names in CURVES.items()}
)
BY_HAND: dict[str, Callable[[], Drawing]] = DRAWINGS | STORY | {"map": figure_1}


def of_a_model(translator: Translator) -> dict[str, Figure]:
    """Draw the pictures of one date in a model."""
    trace, beam = trace_translation(translator.using(beam=1), TEXT), trace_translation(translator.using(beam=4), TEXT)
    return {name: draw(beam if name == "tree" else trace) for name, draw in OF_A_MODEL.items()}


def main(arguments: list[str]) -> None:
    PICTURES.mkdir(exist_ok=True)
    drawn = {name: draw() for name, draw in OF_RECORDS.items()}
    if arguments:
        drawn |= of_a_model(Translator.load(arguments[0], device="cpu"))
    elif not all((PICTURES / f"{name}.svg").exists() for name in OF_A_MODEL):
        drawn |= of_a_model(Translator.load(DATE_MODEL, device="cpu"))
    for name, figure in drawn.items():
        save(figure, PICTURES / f"{name}.svg")
        print(PICTURES / f"{name}.svg")
    for name, drawing in BY_HAND.items():
        write_whole(PICTURES / f"{name}.svg", drawing().svg())
        print(PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
