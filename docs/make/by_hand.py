"""The walk in four dimensions: the numbers of one short date that can be checked by hand, computed by our `nn/`.

The source is a month and a day, `1-5`. All weights are chosen so that the numbers stay small: the one attention
projects with identity matrices, and most other weights are 0 or 1. `DRAWINGS` has a picture for each page of the walk.
"""

import math
from collections.abc import Callable

import torch
from drawing import BLUE, CELL_HEIGHT, CELL_WIDTH, GREEN, ORANGE, PURPLE, Drawing
from torch import Tensor

from allyouneed.nn import Embedding, FeedForward, MultiHeadAttention, attention_weights, causal_mask, sinusoids

DATE = ("1", "-", "5")
TABLE = torch.tensor([[0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0]])  # E: the rows of 1, - and 5
QUERY = torch.tensor([[0.0, 0, 0, 0], [0, 0, 0, 0], [0, 4, 0, 0], [0, 0, 0, 0]])  # W_Q: a 5 looks for a dash
INNER = torch.tensor([[1.0, 0, 0, 0, -1, 0], [0, 1, 0, 0, 0, -1], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]])  # W₁, (4, 6)
OUTER = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]])  # W₂
HEADS: tuple[
    dict[str, list[list[float]]], ...
] = (  # of each head W_Q, W_K and W_V, (4, 2): a 5 looks for a dash, and for a 1
    {
        "query": [[0, 0], [0, 0], [0, 3], [1, 0]],
        "key": [[1, 0], [0, 1], [0, 0], [0, 0]],
        "value": [[1, 0], [0, 0], [0, 2], [0, 1]],
    },
    {
        "query": [[0, 0], [0, 0], [4, 0], [0, 1]],
        "key": [[2, 0], [-1, 0], [-2, 0], [0, 1]],
        "value": [[0, 1], [1, 0], [0, 0], [1, 0]],
    },
)
LETTERS = ("J", "F", "M", "A")  # the vocabulary of the target: how months begin
LETTER_TABLE = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
DECODED = torch.tensor([2.0, 0.0, 1.0, 0.0])  # the decoder's output at the first position
SMOOTHING = 0.1
FIRST = {"Ma": 0.6, "J": 0.4}  # the search: probabilities of a first piece, and of what may follow it
SECOND = {"Ma": {"y": 0.5, "rch": 0.5}, "J": {"anuary": 0.9, "une": 0.1}}


@torch.inference_mode()
def embedded() -> Tensor:
    """Return √d_model · E[id] for each character, (3, 4)."""
    embedding = Embedding(vocab_size=3, d_model=4)
    embedding.table.copy_(TABLE)
    vectors: Tensor = embedding(torch.tensor([[0, 1, 2]]))[0]
    return vectors


def with_positions() -> Tensor:
    """Return the input of the first block, (3, 4)."""
    return embedded() + sinusoids(3, 4)


def attended(mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the weights (3, 3) and the output (3, 4) of self-attention whose four matrices are the identity."""
    x = with_positions()
    weights = attention_weights(x[None, None], x[None, None], mask)[0, 0]
    return weights, weights @ x


@torch.inference_mode()
def two_heads() -> dict[str, Tensor]:
    """Compute for each head query, key and value (2, 3, 2), weights (2, 3, 3) and output (2, 3, 2)."""
    attention = MultiHeadAttention(d_model=4, heads=2)
    for name in ("query", "key", "value"):
        linear = getattr(attention, name)
        linear.weight.copy_(torch.cat([torch.tensor(head[name]).T for head in HEADS]))
        linear.bias.zero_()
    x = with_positions()[None]
    query, key, value = (heads[0] for heads in attention.project(x, x, x))
    weights = attention.weights(x, x)[0]
    return {"query": query, "key": key, "value": value, "weights": weights, "output": weights @ value}


def looking_for_the_dash() -> tuple[Tensor, Tensor]:
    """Return the queries (3, 4) of a learned W_Q, and their weights (3, 3); keys and values stay what they were."""
    queries = with_positions() @ QUERY
    return queries, attention_weights(queries[None, None], with_positions()[None, None])[0, 0]


def residual_sum() -> Tensor:
    """Return the sum x + Attention(x), (3, 4)."""
    return with_positions() + attended()[1]


def normalized() -> Tensor:
    """Return its layer normalization with gain 1 and bias 0, (3, 4)."""
    return torch.nn.functional.layer_norm(residual_sum(), (4,))


@torch.inference_mode()
def fed_forward() -> tuple[Tensor, Tensor, Tensor]:
    """Return xW₁ (3, 6), the same after the ReLU, and the output (3, 4)."""
    network = FeedForward(d_model=4, d_ff=6)
    for linear, weight in ((network.inner, INNER), (network.outer, OUTER)):
        linear.weight.copy_(weight.T)
        linear.bias.zero_()
    inner = network.inner(normalized())
    return inner, inner.relu(), network(normalized())


def letter_logits() -> Tensor:
    """Return the logits of the four letters, (4,)."""
    return LETTER_TABLE @ DECODED


def draw_embedding() -> Drawing:
    """Draw a row of the table for each character, times √d_model."""
    picture = Drawing(620, 130, "Each character takes its row of the table, and the row is multiplied by two")
    right, middle = picture.numbers(60, 36, TABLE.tolist(), names=DATE, title="table E", colour=PURPLE, digits=1)
    picture.arrow((right + 12, middle), (right + 118, middle), label="× √4 = 2")
    picture.numbers(right + 150, 36, embedded().tolist(), names=DATE, title="√d_model · E", digits=1)
    return picture


def draw_position() -> Drawing:
    """Draw embedding + encoding of the position = the input of the encoder."""
    picture = Drawing(740, 130, "The embedding plus the encoding of the position is what enters the encoder")
    right, middle = picture.numbers(40, 36, embedded().tolist(), names=DATE, title="embedding", digits=1)
    picture.text(right + 20, middle, "+", bold=True)
    names = ("0", "1", "2")
    right, _ = picture.numbers(right + 56, 36, sinusoids(3, 4).tolist(), names=names, title="PE", colour=PURPLE)
    picture.text(right + 20, middle, "=", bold=True)
    picture.numbers(right + 56, 36, with_positions().tolist(), names=DATE, title="x", colour=GREEN)
    return picture


def draw_attention() -> Drawing:
    """Draw equation 1 for one query, from left to right."""
    x, (weights, output) = with_positions(), attended()
    scores = x @ x[2]
    picture = Drawing(
        736, 236, "One query: its product with every key, divided by 2, softmax, and the mean of the values"
    )
    picture.numbers(60, 30, [x[2].tolist()], names=["5"], title="query q", colour=ORANGE)
    right, middle = picture.numbers(60, 92, x.tolist(), names=DATE, title="keys k", colour=BLUE)
    columns = (("q · k", scores), ("÷ √4", scores / 2), ("softmax", weights[2]))
    for title, values in columns:
        picture.arrow((right + 6, middle), (right + 28, middle))
        right, _ = picture.numbers(right + 34, 92, [[value] for value in values.tolist()], title=title, colour=ORANGE)
    picture.text(right + 20, middle, "×", bold=True)
    right, _ = picture.numbers(right + 52, 92, x.tolist(), names=DATE, title="values v", colour=GREEN)
    picture.arrow((right - 2 * CELL_WIDTH, 92 + 3 * CELL_HEIGHT + 2), (right - 2 * CELL_WIDTH, 196))
    picture.numbers(right - 4 * CELL_WIDTH, 202, [output[2].tolist()], names=["output"], colour=GREEN)
    return picture


def draw_learned_query() -> Drawing:
    """Draw the same query through the identity, and through a W_Q that looks for the dash."""
    x, (queries, weights) = with_positions(), looking_for_the_dash()
    picture = Drawing(660, 254, "Through the identity the 5 attends to itself; through a learned map to the dash")
    for index, (name, query, row) in enumerate(
        (("W_Q = identity", x[2], attended()[0][2]), ("W_Q: third → second, × 4", queries[2], weights[2]))
    ):
        top = 40 + 118 * index
        right, middle = picture.numbers(50, top, [x[2].tolist()], names=["5"], title="x", colour=GREEN)
        picture.arrow((right + 8, middle), (right + 196, middle), label=name)
        right, _ = picture.numbers(right + 206, top, [query.tolist()], title="query q", colour=ORANGE)
        middle, below = right - 2 * CELL_WIDTH, top + CELL_HEIGHT
        picture.arrow((middle, below), (middle, below + 24))
        left = middle - 1.5 * CELL_WIDTH
        picture.numbers(left, below + 26, [row.tolist()], colour=PURPLE)
        picture.text(left - 10, below + 26 + CELL_HEIGHT / 2, "weights of 1, - and 5", anchor="end", style="small")
    return picture


def draw_heads() -> Drawing:
    """Draw two heads, each with matrices of its own, for the query of the 5."""
    found = {name: tensor.tolist() for name, tensor in two_heads().items()}
    picture = Drawing(
        652, 738, "Each head has matrices of its own; what the heads find for one query is put side by side"
    )
    picture.numbers(40, 34, with_positions().tolist(), names=DATE, title="x", colour=PURPLE)
    columns = {"query": (40, ORANGE), "key": (176, BLUE), "value": (312, GREEN)}
    for head, matrices in enumerate(HEADS):
        top = 172 + 270 * head
        picture.text(40, top - 36, f"head {head + 1}", anchor="start", bold=True)
        for name, (x, colour) in columns.items():
            title = f"W_{name[0].upper()}"
            middle = x + CELL_WIDTH
            picture.numbers(x, top, matrices[name], title=title, colour=colour, digits=0)
            picture.arrow((middle, top + 4 * CELL_HEIGHT), (middle, top + 130))
            picture.text(middle + 8, top + 117, f"x · {title} = {name[0]}", anchor="start", style="small")
            rows = found[name][head][2:] if name == "query" else found[name][head]
            names = ["5"] if name == "query" else DATE
            picture.numbers(x, top + 132, rows, names=names, colour=colour)
        weights = [[value] for value in found["weights"][head][2]]
        right, centre = picture.numbers(452, top + 132, weights, title="weights", colour=ORANGE)
        picture.text(right + 24, centre, "× v =", style="small")
        picture.numbers(right + 48, centre - CELL_HEIGHT / 2, [found["output"][head][2]], colour=GREEN)
    bottom = 172 + 2 * 270 - 26
    picture.numbers(454, bottom, [found["output"][0][2] + found["output"][1][2]], colour=GREEN)
    picture.text(442, bottom + CELL_HEIGHT / 2, "side by side:", anchor="end", style="small")
    picture.text(454 + 2 * CELL_WIDTH, bottom + CELL_HEIGHT + 14, "× W_O follows", style="small")
    return picture


def draw_masks() -> Drawing:
    """Draw scores, the same with later positions masked, and the weights."""
    x = with_positions()
    scores = x @ x.T / 2
    allowed = causal_mask(3)
    masked = [
        [value if may else "−∞" for value, may in zip(row, row_allowed, strict=True)]
        for row, row_allowed in zip(scores.tolist(), allowed.tolist(), strict=True)
    ]
    picture = Drawing(690, 136, "The causal mask puts minus infinity above the diagonal; softmax makes it zero")
    right, middle = picture.numbers(40, 40, scores.tolist(), names=DATE, title="scores", colour=BLUE)
    picture.arrow((right + 10, middle), (right + 74, middle), label="mask")
    right, _ = picture.numbers(right + 84, 40, masked, title="masked", colour=PURPLE)
    picture.arrow((right + 10, middle), (right + 84, middle), label="softmax")
    picture.numbers(right + 94, 40, attended(mask=allowed)[0].tolist(), title="weights", colour=ORANGE)
    return picture


def draw_feed_forward() -> Drawing:
    """Draw one vector: wider, negative numbers set to zero, narrow again."""
    inner, active, output = (tensor[2].tolist() for tensor in fed_forward())
    picture = Drawing(
        420, 314, "One vector becomes wider, its negative numbers become zero, and it becomes narrow again"
    )
    rows = (
        ("x", normalized()[2].tolist(), GREEN, "× W₁: appends −1st and −2nd"),
        ("xW₁", inner, BLUE, "ReLU: negative becomes 0"),
        ("ReLU(xW₁)", active, ORANGE, "× W₂: adds 5th to 1st, 6th to 2nd"),
        ("FFN(x)", output, GREEN, ""),
    )
    for index, (name, row, colour, following) in enumerate(rows):
        top = 12 + 88 * index
        picture.numbers(90, top, [row], names=[name], colour=colour)
        for column in range(len(row)):
            x = 90 + CELL_WIDTH * (column + 0.5)
            if index:
                picture.arrow((x, top - 18), (x, top - 2))
            if following:
                picture.arrow((x, top + CELL_HEIGHT), (x, top + CELL_HEIGHT + 16))
        if following:
            picture.box(90, top + CELL_HEIGHT + 18, 6 * CELL_WIDTH, 26, following)
    return picture


def draw_add_and_norm() -> Drawing:
    """Draw one vector: added, centred, divided by its standard deviation."""
    x, update, total = with_positions()[2], attended()[1][2], residual_sum()[2]
    mean, variance = total.mean(), total.var(unbiased=False)
    picture = Drawing(
        590, 290, "The sublayer's output is added to its input; the sum is normalized to mean 0 and variance 1"
    )
    rows = (
        ("x", x, BLUE, ""),
        ("+ attention", update, ORANGE, ""),
        ("= sum", total, PURPLE, f"mean {mean:.2f}, variance {variance:.2f}"),
        ("− mean", total - mean, PURPLE, f"mean 0, variance {variance:.2f}"),
        (f"÷ √{variance:.2f}", normalized()[2], GREEN, "mean 0, variance 1"),
    )
    for index, (name, row, colour, note) in enumerate(rows):
        top = 16 + 54 * index
        right, middle = picture.numbers(120, top, [row.tolist()], names=[name], colour=colour)
        picture.text(right + 16, middle, note, anchor="start", style="small")
    return picture


def draw_stream() -> Drawing:
    """Draw the residual streams of encoder and decoder: every sublayer reads a stream and writes to it."""
    picture = Drawing(660, 400, "The residual streams of the encoder and the decoder")
    streams = {  # where each begins and ends, its sublayers, and the side on which they are
        150: ("source", ["self-attention", "feed-forward"], "memory", 1),
        560: ("target so far", ["masked self-attention", "cross-attention", "feed-forward"], "linear, softmax", -1),
    }
    for x, (start, sublayers, end, side) in streams.items():
        picture.text(x, 384, start)
        picture.text(x, 366, "+ position", style="small")
        top = 354 - 96 * len(sublayers) - 36
        picture.box(x - 5, top, 10, 354 - top, colour=GREEN, strong=True)
        for index, name in enumerate(sublayers):
            y, middle = 314 - 96 * index, x + 115 * side
            picture.box(middle - 75, y - 40, 150, 32, name, colour=BLUE if name == "feed-forward" else ORANGE)
            picture.arrow((x + 5 * side, y + 6), (middle, y + 6), (middle, y - 8))
            picture.arrow((middle, y - 40), (middle, y - 54), (x + 7 * side, y - 54))
            anchor = "end" if side == 1 else "start"
            picture.text(x - 12 * side, y + 6, "reads", anchor=anchor, style="small")
            picture.text(x - 12 * side, y - 54, "adds, norm", anchor=anchor, style="small")
        picture.text(x, top - 14, end, bold=True)
    picture.arrow((182, 112), (355, 112), (355, 194), (368, 194))
    picture.text(262, 98, "keys and values", style="small")
    return picture


def draw_projection() -> Drawing:
    """Draw the dot product with each row of the table, then softmax."""
    logits = letter_logits()
    picture = Drawing(
        560, 210, "The decoder's vector times each row of the table gives logits; softmax gives probabilities"
    )
    picture.numbers(60, 30, [DECODED.tolist()], names=["x"], title="output of the decoder", digits=0, colour=GREEN)
    right, middle = picture.numbers(
        60, 94, LETTER_TABLE.tolist(), names=LETTERS, title="table", digits=0, colour=PURPLE
    )
    picture.arrow((right + 10, middle), (right + 66, middle), label="x · row")
    right, _ = picture.numbers(right + 76, 94, [[value] for value in logits.tolist()], title="logits", digits=0)
    picture.arrow((right + 10, middle), (right + 84, middle), label="softmax")
    column = [[value] for value in logits.softmax(0).tolist()]
    picture.numbers(right + 94, 94, column, title="probability", colour=ORANGE)
    return picture


def smoothed_target() -> Tensor:
    """Return the target of the letter J, smoothed, (4,)."""
    target = torch.full((4,), SMOOTHING / 4)
    target[0] += 1 - SMOOTHING
    return target


def draw_learning() -> Drawing:
    """Draw the cross-entropy of the probabilities with the smoothed target."""
    target, log_probabilities = smoothed_target(), letter_logits().log_softmax(0)
    terms = -target * log_probabilities
    picture = Drawing(400, 180, "The loss is the sum of minus the log-probability times the target")
    columns = (
        ("−log p", -log_probabilities, ORANGE, "×", 2),
        ("target", target, PURPLE, "=", 3),
        ("product", terms, BLUE, "", 3),
    )
    right = 0.0
    for title, values, colour, sign, digits in columns:
        column = [[value] for value in values.tolist()]
        right, middle = picture.numbers(
            right + 70, 36, column, names=LETTERS, title=title, colour=colour, digits=digits
        )
        picture.text(right + 26, middle, sign, bold=True)
    picture.text(right - CELL_WIDTH / 2, 160, f"loss = {terms.sum():.3f}", bold=True)
    return picture


def draw_decoding() -> Drawing:
    """Draw how greedy search takes the better first piece and misses the better whole."""
    picture = Drawing(620, 240, "The better first piece does not begin the more probable month")
    picture.box(20, 104, 70, 30, "start")
    best = max(p * q for piece, p in FIRST.items() for q in SECOND[piece].values())
    for index, (piece, probability) in enumerate(FIRST.items()):
        y = 60 + 120 * index
        picture.arrow((90, 119), (186, y))
        picture.text(132, y + (8 if index == 0 else -8), f"{probability:g}", style="small")
        picture.box(190, y - 15, 70, 30, piece, colour=ORANGE)
        for below, (following, conditional) in enumerate(SECOND[piece].items()):
            end = y - 26 + 52 * below
            total = probability * conditional
            picture.arrow((260, y), (346, end))
            picture.text(306, end + (-2 if below == 0 else 4), f"{conditional:g}", style="small")
            picture.box(350, end - 15, 100, 30, piece + following, colour=GREEN, strong=math.isclose(total, best))
            picture.text(462, end, f"{probability:g} × {conditional:g} = {total:.2f}", anchor="start", style="small")
    return picture


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "hand-embedding": draw_embedding,
    "hand-position": draw_position,
    "hand-attention": draw_attention,
    "hand-learned-query": draw_learned_query,
    "hand-heads": draw_heads,
    "hand-masks": draw_masks,
    "hand-feed-forward": draw_feed_forward,
    "hand-add-and-norm": draw_add_and_norm,
    "hand-stream": draw_stream,
    "hand-projection": draw_projection,
    "hand-learning": draw_learning,
    "hand-decoding": draw_decoding,
}
