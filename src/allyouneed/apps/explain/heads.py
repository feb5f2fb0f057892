"""Describe the attention of each head by the share of its weight on positions that a reader can name."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .trace import Trace, attention_tokens, attentions

PATTERN_SHARE = 0.3  # share of the weight that makes a pattern
PATTERN_LIFT = 2.0  # and how many times the share of evenly spread weights it must be
EVEN = 0.9  # share of the largest possible entropy; above it, weights count as spread evenly
NO_PATTERN = "no clear pattern"
SPREAD = "spread evenly"


@dataclass(frozen=True, slots=True)
class Head:
    """Where a head attends, averaged over all queries: shares of its weight, from 0 to 1, and its entropy in bits.

    `role` is the pattern that differs most from evenly spread weights: the head puts `share` of its weight on the keys
    of this pattern, where even weights would put `even`. The role is "no clear pattern" if none has 30 % of the weight
    and twice its even share.
    """

    part: str
    head: int  # counted from 1
    entropy: float
    same: float
    previous: float
    next: float
    sos: float
    eos: float
    punctuation: float
    equal: float
    role: str
    share: float
    even: float


def describe_heads(trace: Trace) -> list[Head]:
    """Describe each head of each attention for this sentence."""
    heads = []
    for part, weights in attentions(trace).items():
        queries, keys = attention_tokens(trace, part)
        # In self-attention, a decoder's query stands for the token it reads; in cross-attention, for the token it
        # writes.
        compared = keys if part.endswith("self_attention") else queries
        for number, head in enumerate(weights, start=1):
            heads.append(describe_head(part, number, head, queries=compared, keys=keys))
    return heads


def describe_head(part: str, number: int, weights: Tensor, *, queries: Sequence[str], keys: Sequence[str]) -> Head:
    """Describe a head with the weights (T, S). `queries` and `keys` are the tokens of its rows and columns."""
    rows, columns = weights.shape
    visible = visible_keys(part, rows, columns)
    even = visible / visible.sum(-1, keepdim=True)
    patterns = token_patterns(part, queries, keys)
    patterns["one token"] = (torch.arange(columns) == weights.mean(0).argmax()).float().expand(rows, columns)
    shares: dict[str, float] = {name: _share(weights, pattern) for name, pattern in patterns.items()}
    expected = {name: _share(even, pattern) for name, pattern in patterns.items()}
    # The first of equals: "<eos>" rather than "one token".
    role = max(shares, key=lambda name: shares[name] - expected[name])
    entropy, largest = _entropy(weights), _entropy(even)
    if shares[role] < max(PATTERN_SHARE, PATTERN_LIFT * expected[role]):
        role = SPREAD if entropy > EVEN * largest else NO_PATTERN
    best = role if role in shares else max(shares, key=shares.__getitem__)
    return Head(
        part, number, entropy,
        same=shares["same position"], previous=shares["previous position"], next=shares["next position"],
        sos=shares["<sos>"], eos=shares["<eos>"], punctuation=shares["punctuation"], equal=shares["equal token"],
        role=role, share=shares[best], even=expected[best],
    )  # fmt: skip


def visible_keys(part: str, rows: int, columns: int) -> Tensor:
    """Return which keys each query of an attention may attend to, as a (T, S) matrix of 0 and 1."""
    visible = torch.ones(rows, columns)
    return visible.tril() if part.endswith("self_attention") else visible


def token_patterns(part: str, queries: Sequence[str], keys: Sequence[str]) -> dict[str, Tensor]:
    """Return a (T, S) matrix for each attention pattern: 1 where query t attends to key s by the pattern, else 0."""
    rows, columns, crossing = len(queries), len(keys), part.endswith("cross_attention")
    # In cross-attention, position t predicts token t + 1, so its "same position" is column t + 1.
    shift = 1 if crossing else 0

    def along(offset: int) -> Tensor:
        return torch.ones(rows, columns).tril(offset).triu(offset)

    def on_keys(matches: Sequence[bool]) -> Tensor:
        return torch.tensor(matches, dtype=torch.float32).expand(rows, columns)

    names = [piece.strip("␣") for piece in keys]
    equal = torch.tensor([[bool(key) and query.strip("␣") == key for key in names] for query in queries])
    return {
        "same position": along(shift),
        "previous position": along(shift - 1),
        "next position": along(shift + 1),
        "<sos>": on_keys([piece == "<sos>" for piece in keys]),
        "<eos>": on_keys([piece == "<eos>" for piece in keys]),
        "punctuation": on_keys([_is_punctuation(name) for name in names]),
        "equal token": equal.float() * (torch.ones(rows, columns) if crossing else 1 - along(0)),
    }


def _is_punctuation(text: str) -> bool:
    return (
        bool(text) and all(unicodedata.category(letter).startswith(("P", "S")) for letter in text) and "<" not in text
    )


def _share(weights: Tensor, pattern: Tensor) -> float:
    return float((weights * pattern).sum() / len(weights))


def _entropy(weights: Tensor) -> float:
    return float(-(weights * weights.clamp_min(1e-12).log2()).sum(-1).mean())


def describe_finding(head: Head) -> str:
    """Put the finding about a head into a sentence."""
    if head.role in (NO_PATTERN, SPREAD):
        return f"{head.role}; it attends to about {2**head.entropy:.1f} positions at a time"
    return f"{head.role}: {100 * head.share:.0f} % of its weight (evenly spread: {100 * head.even:.0f} %)"
