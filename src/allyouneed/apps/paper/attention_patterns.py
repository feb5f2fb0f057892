"""Figures 3 to 5 from one of our models: long-range attention, a pronoun, and two heads that attend to different words.

Each figure shows the clearest case among some sentences, by the measure named in its description. If there is no case,
the description says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, product
from statistics import median

import torch
from matplotlib.figure import Figure
from torch import Tensor

from ...errors import InputError
from ...translator import Translator
from ...translator.likelihood import eval_copy
from ..explain import recorded
from ..explain.draw import BLUE, MONOSPACE, ORANGE, new_figure

CLEAR = 0.3  # attention weight from which on a head attends clearly
PRONOUNS = {"he", "she", "it", "they", "him", "her", "his", "its", "their", "them", "himself", "herself"}


@dataclass(frozen=True, slots=True)
class AttentionPattern:
    """A figure: the name of the pattern, a description of the case, and its drawing (None if there is no case)."""

    name: str
    text: str
    figure: Figure | None


@dataclass(frozen=True, slots=True)
class _Head:
    """The self-attention of an encoder head for one sentence: `weights` (S, S); layer and head are counted from 1."""

    pieces: list[str]
    layer: int
    head: int
    weights: Tensor


def find_patterns(translator: Translator, sentences: Sequence[str]) -> list[AttentionPattern]:
    """Draw the three figures, each from the sentence and the head that show it best. Refuses an empty list."""
    heads = list(_heads(translator, [sentence for sentence in sentences if sentence.strip()]))
    if not heads:
        raise InputError("the figures need a sentence to draw; every line is empty")
    return [_long_range(heads), _anaphora(heads), _structure(heads)]


def _heads(translator: Translator, sentences: Sequence[str]) -> Iterator[_Head]:
    model, tokenizer = eval_copy(translator.model), translator.source_tokenizer
    for sentence in sentences:
        ids = tokenizer.encode(translator.bundle.normalization(sentence))
        if len(ids) > model.config.max_length:
            continue
        device = next(model.parameters()).device
        with torch.inference_mode(), recorded(model) as seen:
            model.encode(torch.tensor([ids], device=device))
        for layer in range(model.config.encoder_layers):
            for head, weights in enumerate(seen[f"encoder.layers.{layer}.attention"][0].float().cpu(), start=1):
                yield _Head(tokenizer.pieces(ids), layer + 1, head, weights)


def _long_range(heads: Sequence[_Head]) -> AttentionPattern:
    """Draw figure 3: the longest distance between words with an attention weight of at least `CLEAR`."""
    cases = [
        (abs(query - other), float(head.weights[query, other]), head, query, other)
        for head in heads
        for query, other in product(_words(head.pieces), repeat=2)
        if query != other and head.weights[query, other] >= CLEAR
    ]
    if not cases:
        return AttentionPattern("figure-3", f"No head gives another word a weight of {CLEAR} or more.", None)
    far, weight, head, query, other = max(cases, key=lambda case: case[:2])
    sentences = {tuple(head.pieces) for head in heads}
    have_one = {tuple(case[2].pieces) for case in cases if case[0] >= 10}
    text = (
        f"Long range: in layer {head.layer}, head {head.head}, {_quoted(head, query)} gives {_quoted(head, other)}, "
        f"{far} tokens away, a weight of {weight:.2f}. Weights of {CLEAR} or more over at least ten tokens occur in "
        f"{len(have_one)} of {len(sentences)} sentences."
    )
    same = [one for one in heads if one.pieces == head.pieces and one.layer == head.layer]
    rows = [_only(one.weights, query) for one in same]
    return AttentionPattern(
        "figure-3", text, _lines(head.pieces, rows, f"layer {head.layer}", [one.head for one in same])
    )


def _anaphora(heads: Sequence[_Head]) -> AttentionPattern:
    """Draw figure 4: the pronoun with the strongest attention to a word two or more tokens before it."""
    cases = [case for head in heads for case in _pronoun_cases(head)]
    if not cases:
        return AttentionPattern("figure-4", "No sentence has an English pronoun with two words before it.", None)
    weight, head, query, other = max(cases, key=lambda case: case[0])
    same_head = [case[0] for case in cases if (case[1].layer, case[1].head) == (head.layer, head.head)]
    text = (
        f"Anaphora: in layer {head.layer}, head {head.head}, {_quoted(head, query)} attends to "
        f"{_quoted(head, other)} with a weight of {weight:.2f}; whether it refers to that word is not checked. "
        f"Over all {len(same_head)} pronouns, the strongest weight of this head is {median(same_head):.2f} (median)."
    )
    rows = [_only(head.weights, query)]
    return AttentionPattern("figure-4", text, _lines(head.pieces, rows, f"layer {head.layer}", [head.head]))


def _pronoun_cases(head: _Head) -> Iterator[tuple[float, _Head, int, int]]:
    """Find each pronoun's strongest weight on a word two or more tokens before it: weight, head, query, key."""
    words = _words(head.pieces)
    for query in words:
        before = [(float(head.weights[query, other]), other) for other in words if other < query - 1]
        if before and head.pieces[query].strip("␣").lower() in PRONOUNS:
            weight, other = max(before)
            yield weight, head, query, other


def _structure(heads: Sequence[_Head]) -> AttentionPattern:
    """Draw figure 5: the two heads of a layer with sharp and different attention, in a sentence of 8 tokens or more."""
    pairs = [
        (min(float(head.weights.max(-1).values.mean()) for head in pair) * (apart := _apart(*pair)), apart, pair)
        for _, layer in groupby(heads, key=lambda head: (head.layer, head.pieces))  # heads come in this order
        for pair in combinations(layer, 2)
        if len(pair[0].pieces) >= 8
    ]
    if not pairs:
        return AttentionPattern("figure-5", "No sentence has eight tokens, or the layers have one head only.", None)
    _, apart, (one, other) = max(pairs, key=lambda pair: pair[0])
    text = (
        f"Division of work: in layer {one.layer}, heads {one.head} and {other.head} put {100 * apart:.0f} % of their "
        f"weight on different tokens of the same sentence. For all pairs of heads of a layer the median is "
        f"{100 * median(pair[1] for pair in pairs):.0f} %."
    )
    rows = [one.weights, other.weights]
    return AttentionPattern("figure-5", text, _lines(one.pieces, rows, f"layer {one.layer}", [one.head, other.head]))


def _only(weights: Tensor, query: int) -> Tensor:
    """Keep the weights of one row, and set all others to zero."""
    row = torch.zeros_like(weights)
    row[query] = weights[query]
    return row


def _apart(one: _Head, other: _Head) -> float:
    """Return the share of their weight that two heads put on different tokens."""
    return float((one.weights - other.weights).abs().sum(-1).mean()) / 2


def _words(pieces: Sequence[str]) -> list[int]:
    return [i for i, piece in enumerate(pieces) if any(letter.isalnum() for letter in piece) and "<" not in piece]


def _quoted(head: _Head, query: int) -> str:
    return f"“{head.pieces[query].strip('␣')}”"


def _lines(pieces: Sequence[str], heads: Sequence[Tensor], title: str, numbers: Sequence[int]) -> Figure:
    """Draw lines from the queries, on the left, to the keys, in one panel for each head and at most eight panels."""
    drawn = list(heads[:8])
    text_width = 0.075 * max(map(len, pieces))  # in inches, on each side
    width = 2 * text_width + 0.9
    left, right = text_width / width, 1 - text_width / width
    figure = new_figure(width * len(drawn) + 0.4, 0.24 * len(pieces) + 0.8)
    figure.suptitle(title, fontsize=10)
    panels = figure.subplots(1, len(drawn), squeeze=False).flat
    for axes, weights, number in zip(panels, drawn, numbers, strict=False):
        colour = (BLUE, ORANGE)[number % 2]
        axes.set_title(f"head {number}", fontsize=9)
        for query, row in enumerate(weights):
            for other, weight in enumerate(row.tolist()):
                if weight > 0.05:
                    style = {"color": colour, "alpha": min(1.0, weight), "linewidth": 3 * weight}
                    axes.plot([left + 0.02, right - 0.02], [query, other], **style)
        for y, piece in enumerate(pieces):
            axes.text(left, y, piece, ha="right", va="center", fontsize=8, family=MONOSPACE, parse_math=False)
            axes.text(right, y, piece, ha="left", va="center", fontsize=8, family=MONOSPACE, parse_math=False)
        axes.set(xlim=(0, 1), ylim=(len(pieces) - 0.5, -0.5))
        axes.axis("off")
    return figure
