"""The Transformer of "Attention Is All You Need" in one file of Python that needs no library.

    python examples/micro.py

It learns to rewrite dates, `28-12` as `Dec 28`, in about a minute. Read it from top to bottom: numbers with gradients,
the operations, the boxes of Figure 1, the model, learning, translating. Nothing is made fast: sentences are computed
one after another, and a sequence of L vectors of D numbers is a list of L rows.

`src/allyouneed/nn/` has the same model for many sentences at once, in PyTorch. A test gives both the same weights and
compares logits, loss and gradients.
"""

# ruff: noqa: B905 (zip is short to read; the test would see rows of different lengths)

import math
import random
from collections.abc import Callable, Iterator, Sequence
from operator import add, mul
from typing import Any, ClassVar

D_MODEL = 16  # numbers in a vector; in the paper 512
D_FF = 32  # inside the feed-forward network; 2,048
HEADS = 2  # 8
LAYERS = 1  # blocks of the encoder, and of the decoder; 6
SMOOTHING = 0.1  # of the labels, §5.4
WARMUP = 100  # updates; 4,000
UPDATES = 400  # 100,000
BATCH = 8  # sentences of an update

Rows = list[list[float]]


# Numbers with gradients. Each result notes how to pass its gradient on to the numbers that it was computed from.


class Numbers:
    """A table of numbers, and its gradient: by how much the loss grows when one of them grows."""

    results: ClassVar[list["Numbers"]] = []  # in the order in which they were computed

    def __init__(self, rows: Rows, backward: Callable[[Rows], None] | None = None) -> None:
        self.rows = rows
        self.gradient: Rows = []  # empty until one arrives
        self.backward = backward
        if backward:
            self.results.append(self)

    def receive(self, gradient: Rows) -> None:
        """Add a gradient to what arrived before: a number that is used twice matters in two ways."""
        self.gradient = plus(self.gradient, gradient) if self.gradient else gradient


def backpropagate(loss: Numbers) -> None:
    """Pass gradients from the loss back to all that it was computed from, the last result first (the chain rule)."""
    loss.gradient = [[1.0]]
    for result in reversed(Numbers.results):
        if result.gradient and result.backward:
            result.backward(result.gradient)
    Numbers.results.clear()


# Operations: what is computed, and under `backward` its derivative.


def plus(a: Rows, b: Rows) -> Rows:
    return [list(map(add, *both)) for both in zip(a, b)]


def columns(rows: Sequence[Sequence[float]]) -> Rows:
    return [list(column) for column in zip(*rows)]


def products(left: Rows, right: Rows) -> Rows:
    """Multiply every row on the left by every row on the right: (L, D) and (M, D) → (L, M)."""
    return [[sum(map(mul, a, b)) for b in right] for a in left]


def total(x: Numbers, y: Numbers) -> Numbers:
    def backward(gradient: Rows) -> None:
        x.receive(gradient)
        y.receive(gradient)

    return Numbers(plus(x.rows, y.rows), backward)


def multiply(x: Numbers, weight: Numbers, bias: Numbers | None = None) -> Numbers:
    """Compute x Wᵀ + b: (L, D), (M, D) and (1, M) → (L, M)."""
    rows = products(x.rows, weight.rows)
    if bias:
        rows = [list(map(add, row, bias.rows[0])) for row in rows]

    def backward(gradient: Rows) -> None:
        x.receive(products(gradient, columns(weight.rows)))
        weight.receive(products(columns(gradient), columns(x.rows)))
        if bias:
            bias.receive([[sum(column) for column in columns(gradient)]])

    return Numbers(rows, backward)


def transpose(x: Numbers) -> Numbers:
    return Numbers(columns(x.rows), lambda gradient: x.receive(columns(gradient)))


def relu(x: Numbers) -> Numbers:
    def backward(gradient: Rows) -> None:
        x.receive([[g if n > 0 else 0.0 for g, n in zip(*both)] for both in zip(gradient, x.rows)])

    return Numbers([[max(n, 0.0) for n in row] for row in x.rows], backward)


def part_of_head(x: Numbers, number: int) -> Numbers:
    """Take the numbers that belong to one head from each vector: (L, D) → (L, D / HEADS)."""
    start = number * D_MODEL // HEADS
    end = start + D_MODEL // HEADS

    def backward(gradient: Rows) -> None:
        x.receive([[0.0] * start + row + [0.0] * (D_MODEL - end) for row in gradient])

    return Numbers([row[start:end] for row in x.rows], backward)


def join_heads(heads: list[Numbers]) -> Numbers:
    """Put the parts of each vector side by side again: HEADS × (L, D / HEADS) → (L, D)."""
    width = D_MODEL // HEADS

    def backward(gradient: Rows) -> None:
        for number, head in enumerate(heads):
            head.receive([row[number * width : (number + 1) * width] for row in gradient])

    return Numbers([[n for part in parts for n in part] for parts in zip(*(head.rows for head in heads))], backward)


def probabilities(scores: list[float]) -> list[float]:
    """Turn scores into probabilities: softmax."""
    highest = max(scores)  # subtracted, so that no power overflows
    powers = [math.exp(score - highest) for score in scores]
    whole = sum(powers)
    return [power / whole for power in powers]


def softmax(scores: Numbers, scale: float, is_causal: bool) -> Numbers:
    """Turn each row into weights that sum to 1; a causal row t gives none to what comes after t (§3.2.3)."""
    rows = []
    for t, row in enumerate(scores.rows):
        seen = t + 1 if is_causal else len(row)
        rows.append(probabilities([score * scale for score in row[:seen]]) + [0.0] * (len(row) - seen))

    def backward(gradient: Rows) -> None:
        result = []
        for g, w in zip(gradient, rows):
            mean = sum(map(mul, g, w))
            result.append([scale * b * (a - mean) for a, b in zip(g, w)])
        scores.receive(result)

    return Numbers(rows, backward)


def layer_norm(x: Numbers, gain: Numbers, bias: Numbers) -> Numbers:
    """Give each vector mean 0 and variance 1, then a learned gain and bias."""
    normal, scales = [], []
    for row in x.rows:
        mean = sum(row) / D_MODEL
        centred = [n - mean for n in row]
        scales.append((sum(map(mul, centred, centred)) / D_MODEL + 1e-5) ** -0.5)
        normal.append([n * scales[-1] for n in centred])

    def backward(gradient: Rows) -> None:
        result = []
        for g, n, scale in zip(gradient, normal, scales):
            g_normal = list(map(mul, g, gain.rows[0]))
            mean = sum(g_normal) / D_MODEL
            slope = sum(map(mul, g_normal, n)) / D_MODEL
            result.append([scale * (a - mean - slope * b) for a, b in zip(g_normal, n)])
        x.receive(result)
        gain.receive([[sum(map(mul, *both)) for both in zip(columns(gradient), columns(normal))]])
        bias.receive([[sum(column) for column in columns(gradient)]])

    return Numbers([list(map(add, map(mul, row, gain.rows[0]), bias.rows[0])) for row in normal], backward)


def look_up(table: Numbers, ids: list[int]) -> Numbers:
    """Take the row of each id, times √d_model (§3.4)."""
    scale = D_MODEL**0.5

    def backward(gradient: Rows) -> None:
        result = [[0.0] * D_MODEL for _ in table.rows]
        for token, row in zip(ids, gradient):
            result[token] = [a + scale * b for a, b in zip(result[token], row)]
        table.receive(result)

    return Numbers([[scale * n for n in table.rows[token]] for token in ids], backward)


def cross_entropy(logits: Numbers, targets: list[int], tokens: int) -> Numbers:
    """Sum the loss of the targets in nats, divided by the tokens of the batch; labels are smoothed (§5.4)."""
    loss = 0.0
    gradient = []
    for row, target in zip(logits.rows, targets):
        predicted = probabilities(row)
        wanted = [SMOOTHING / len(row)] * len(row)
        wanted[target] += 1 - SMOOTHING
        loss -= sum(w * math.log(p) for p, w in zip(predicted, wanted)) / tokens
        gradient.append([(p - w) / tokens for p, w in zip(predicted, wanted)])
    return Numbers([[loss]], lambda _: logits.receive(gradient))


# The boxes of Figure 1. Weights have the names that they have in `nn/`.


def linear(weights: Any, x: Numbers) -> Numbers:
    return multiply(x, weights["weight"], weights["bias"])


def positions(length: int) -> Numbers:
    """Make the sines and cosines that tell where a token stands (§3.5)."""
    rows = []
    for position in range(length):
        angles = [position / 10_000 ** (i / D_MODEL) for i in range(0, D_MODEL, 2)]
        rows.append([wave(angle) for angle in angles for wave in (math.sin, math.cos)])
    return Numbers(rows)


def embed(table: Numbers, ids: list[int]) -> Numbers:
    return total(look_up(table, ids), positions(len(ids)))


def attention(weights: Any, x: Numbers, memory: Numbers, is_causal: bool = False) -> Numbers:
    """Let each vector of x take from the vectors of memory what it looks for (§3.2)."""
    query = linear(weights["query"], x)
    key = linear(weights["key"], memory)
    value = linear(weights["value"], memory)
    heads = []
    for number in range(HEADS):
        scores = multiply(part_of_head(query, number), part_of_head(key, number))  # QKᵀ
        shares = softmax(scores, (D_MODEL / HEADS) ** -0.5, is_causal)
        heads.append(multiply(shares, transpose(part_of_head(value, number))))
    return linear(weights["output"], join_heads(heads))


def feed_forward(weights: Any, x: Numbers) -> Numbers:
    return linear(weights["outer"], relu(linear(weights["inner"], x)))


def add_and_norm(weights: Any, x: Numbers, change: Numbers) -> Numbers:
    return layer_norm(total(x, change), weights["norm"]["gain"], weights["norm"]["bias"])


def encode(model: Any, source: list[int]) -> Numbers:
    """Compute the memory: a vector for each token of the source, which knows the others."""
    x = embed(model["source_embedding"]["table"], source)
    for block in model["encoder"]["layers"]:
        x = add_and_norm(block["attention_residual"], x, attention(block["attention"], x, x))
        x = add_and_norm(block["feed_forward_residual"], x, feed_forward(block["feed_forward"], x))
    return x


def decode(model: Any, target: list[int], memory: Numbers) -> Numbers:
    """Compute logits of what follows each token of the target: the table of the embedding, once more (§3.4)."""
    table = model["source_embedding"]["table"]
    x = embed(table, target)
    for block in model["decoder"]["layers"]:
        x = add_and_norm(block["self_attention_residual"], x, attention(block["self_attention"], x, x, is_causal=True))
        x = add_and_norm(block["cross_attention_residual"], x, attention(block["cross_attention"], x, memory))
        x = add_and_norm(block["feed_forward_residual"], x, feed_forward(block["feed_forward"], x))
    return multiply(x, table)


# A new model: random weights.


def draw(height: int, width: int, deviation: float) -> Numbers:
    return Numbers([[random.gauss(0, deviation) for _ in range(width)] for _ in range(height)])


def new_linear(width: int, height: int) -> Any:
    return {"weight": draw(height, width, (2 / (width + height)) ** 0.5), "bias": draw(1, height, 0)}


def new_residual() -> Any:
    return {"norm": {"gain": Numbers([[1.0] * D_MODEL]), "bias": draw(1, D_MODEL, 0)}}


def new_block(*attentions: str) -> Any:
    block: dict[str, Any] = {}
    for name in attentions:
        block[name] = {part: new_linear(D_MODEL, D_MODEL) for part in ("query", "key", "value", "output")}
        block[f"{name}_residual"] = new_residual()
    block["feed_forward"] = {"inner": new_linear(D_MODEL, D_FF), "outer": new_linear(D_FF, D_MODEL)}
    block["feed_forward_residual"] = new_residual()
    return block


def new_model(vocab_size: int) -> Any:
    return {
        "source_embedding": {"table": draw(vocab_size, D_MODEL, D_MODEL**-0.5)},
        "encoder": {"layers": [new_block("attention") for _ in range(LAYERS)]},
        "decoder": {"layers": [new_block("self_attention", "cross_attention") for _ in range(LAYERS)]},
    }


def list_weights(part: Any, name: str = "") -> Iterator[tuple[str, Numbers]]:
    """List the weights with their names, such as `encoder.layers.0.attention.query.weight`."""
    if isinstance(part, Numbers):
        yield name, part
        return
    parts = enumerate(part) if isinstance(part, list) else part.items()
    for key, value in parts:
        yield from list_weights(value, f"{name}.{key}".removeprefix("."))


# The task: dates. A token is a character.

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
START, END = 0, 1
VOCABULARY = ["<start>", "<end>", *sorted({*"0123456789- ", *"".join(MONTHS)})]


def all_dates() -> list[tuple[str, str]]:
    return [
        (f"{day:02}-{number:02}", f"{MONTHS[number - 1]} {day}")
        for number, days in enumerate(DAYS, 1)
        for day in range(1, days + 1)
    ]


def to_ids(text: str) -> list[int]:
    return [START, *(VOCABULARY.index(character) for character in text), END]


# Learning (§5): Adam, with a learning rate that first rises and then falls.


class Adam:
    """Change each weight against its gradient, by steps of about the learning rate (§5.3)."""

    def __init__(self, weights: list[Numbers]) -> None:
        self.weights = weights
        self.means = [[[0.0] * len(row) for row in one.rows] for one in weights]
        self.squares = [[[0.0] * len(row) for row in one.rows] for one in weights]

    def update(self, step: int) -> None:
        rate = D_MODEL**-0.5 * min(step**-0.5, step * WARMUP**-1.5)  # equation 3
        of_mean = 1 - 0.9**step  # the means start at zero: what they lack is divided out
        of_square = 1 - 0.98**step
        for one, means, squares in zip(self.weights, self.means, self.squares):
            for i, gradient in enumerate(one.gradient):
                means[i] = [0.9 * m + 0.1 * g for m, g in zip(means[i], gradient)]
                squares[i] = [0.98 * s + 0.02 * g * g for s, g in zip(squares[i], gradient)]
                changes = [rate * (m / of_mean) / ((s / of_square) ** 0.5 + 1e-9) for m, s in zip(means[i], squares[i])]
                one.rows[i] = [n - change for n, change in zip(one.rows[i], changes)]
            one.gradient = []


def learn(model: Any, pairs: list[tuple[str, str]], tokens: int) -> float:
    """Add the gradients of some pairs. Returns the loss, in nats per token."""
    loss = 0.0
    for source, target in pairs:
        ids = to_ids(target)
        logits = decode(model, ids[:-1], encode(model, to_ids(source)))  # every token is told those before it …
        one = cross_entropy(logits, ids[1:], tokens)  # … and is to be the next
        loss += one.rows[0][0]
        backpropagate(one)
    return loss


def translate(model: Any, source: str) -> str:
    """Write the most probable character, again and again, until it is the end."""
    memory = encode(model, to_ids(source))
    ids = [START]
    while ids[-1] != END and len(ids) < 20:
        scores = decode(model, ids, memory).rows[-1]
        ids.append(scores.index(max(scores)))
    Numbers.results.clear()
    return "".join(VOCABULARY[token] for token in ids[1:] if token != END)


def main() -> None:
    random.seed(1)
    dates = all_dates()
    random.shuffle(dates)
    unseen, known = dates[:60], dates[60:]
    model = new_model(len(VOCABULARY))
    adam = Adam([weights for _, weights in list_weights(model)])
    print(f"{len(known)} dates to learn from; {len(VOCABULARY)} characters")
    for step in range(1, UPDATES + 1):
        pairs = random.sample(known, BATCH)
        loss = learn(model, pairs, sum(len(target) + 1 for _, target in pairs))
        adam.update(step)
        if step % 25 == 0:
            source, target = random.choice(unseen)
            output = translate(model, source)
            verdict = "" if output == target else f", not {target}"
            print(f"update {step}: as unsure as among {math.exp(loss):.1f} characters; {source} → {output}{verdict}")
    right = sum(translate(model, source) == target for source, target in unseen)
    print(f"{right} of {len(unseen)} dates that it never saw are right")


if __name__ == "__main__":
    main()
