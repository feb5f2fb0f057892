"""Claims about the sharpest attention heads, measured over many pairs of texts."""

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...data.pairs import Pair
from ...errors import InputError
from ...translator import Translator
from ...translator.likelihood import eval_copy
from .heads import PATTERN_LIFT, PATTERN_SHARE, token_patterns, visible_keys
from .recording import recorded_attention

MOST_INPUTS = 200  # pairs that a claim is measured over; as many others are used to choose the claim
MOST_CLAIMS = 3
LEAST_QUERIES = 0.05  # share of all queries; a claim about some queries needs at least this many
MOST_TOKENS = 200  # on each side of a pair

ALL = "every token"

# Positions of keys in words, for the positions in `token_patterns` that need more explanation.
_PLACES = {
    "attention": {"same position": "itself", "previous position": "the one before", "next position": "the one after"},
    "self_attention": {
        "same position": "the one just written", "previous position": "the one before that",
        "next position": "the one after", "equal token": "an equal token that it has written",
    },
    "cross_attention": {
        "same position": "the token at that position", "previous position": "the token before that position",
        "next position": "the token after that position", "equal token": "an equal token of the source",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about a head: for the queries `queries`, it puts `share` of its weight on the keys `keys`.

    Evenly spread weights would put `even` on these keys. The shares were measured over `inputs` texts, none of which
    was used to choose the statement.
    """

    part: str
    head: int  # counted from 1
    queries: str
    keys: str
    share: float
    even: float
    inputs: int


class _Shares(NamedTuple):
    """The weight that each kind of query gives to each kind of key, in each head and if it were spread evenly."""

    heads: Tensor  # (H, Q, K)
    even: Tensor  # (Q, K)
    queries: Tensor  # (Q,)


def sharpest_claims(translator: Translator, pairs: Sequence[Pair]) -> list[Claim]:
    """Make claims about the three heads that differ most from evenly spread weights, the sharpest first.

    At most 200 `pairs` are read, source and target. Half of the pairs choose the claims, and the other half measures
    them. There are none if no kind of key has 30 % of a head's weight and twice its even share.
    """
    readable = list(_encoded(translator, pairs))
    half = min(MOST_INPUTS, len(readable) // 2)
    candidates = [
        (float(share - even), part, head, q, k)
        for part, shares in _measure(translator, readable[:half]).items()
        for head, of_head in enumerate(shares.heads)
        for q, k, share, even in _standing_out(of_head, shares)
    ]
    chosen: dict[tuple[str, int], tuple[int, int]] = {}
    for _, part, head, q, k in sorted(candidates, key=lambda claim: -claim[0]):
        if len(chosen) < MOST_CLAIMS:
            chosen.setdefault((part, head), (q, k))
    measured = _measure(translator, readable[half : 2 * half]) if chosen else {}
    return [
        Claim(
            part, head + 1, _QUERIES[q], [*_keys(part, [], [])][k],
            float(measured[part].heads[head, q, k]), float(measured[part].even[q, k]), half,
        )
        for (part, head), (q, k) in chosen.items()
    ]  # fmt: skip


def _standing_out(of_head: Tensor, shares: _Shares) -> Iterator[tuple[int, int, float, float]]:
    """Yield the kinds of query and key that a head links, with the head's share and the share of even weights."""
    least = LEAST_QUERIES * shares.queries[_QUERIES.index(ALL)]
    for q, k in ((of_head >= PATTERN_SHARE) & (of_head >= PATTERN_LIFT * shares.even)).nonzero().tolist():
        if shares.queries[q] >= least:
            yield q, k, float(of_head[q, k]), float(shares.even[q, k])


def _encoded(translator: Translator, pairs: Sequence[Pair]) -> Iterator[tuple[list[int], list[int]]]:
    """Encode the pairs, except those with a character that is not in the vocabulary."""
    normalize = translator.bundles[0].normalization
    longest = min(MOST_TOKENS, translator.model.config.max_length)
    for pair in pairs:
        with suppress(InputError):
            source = translator.source_tokenizer.encode(normalize(pair.source))[:longest]
            yield source, translator.target_tokenizer.encode(normalize(pair.target))[:longest]


@torch.inference_mode()
def _measure(translator: Translator, pairs: Sequence[tuple[list[int], list[int]]]) -> dict[str, _Shares]:
    """Measure the shares of each attention, over all pairs of ids."""
    totals: dict[str, _Shares] = {}
    model, device = eval_copy(translator.model), next(translator.model.parameters()).device
    for source, target in pairs:
        with recorded_attention(model) as seen:
            model(torch.tensor([source], device=device), torch.tensor([target[:-1]], device=device))
        read, written = translator.source_tokenizer.pieces(source), translator.target_tokenizer.pieces(target)
        for part, heads in seen.items():
            rows = read if part.startswith("encoder") else written[1:]
            columns = written[:-1] if part.endswith("self_attention") else read
            queries = torch.stack([*token_groups(rows).values()])  # (Q, T)
            keys = torch.stack([*_keys(part, rows, columns).values()])  # (K, T, S)
            even = visible_keys(part, len(rows), len(columns))
            even /= even.sum(-1, keepdim=True)
            this = _Shares(
                torch.einsum("qt,hts,kts->hqk", queries, heads[0].float().cpu(), keys),
                torch.einsum("qt,ts,kts->qk", queries, even, keys),
                queries.sum(-1),
            )
            before = totals.get(part, this)
            totals[part] = this if before is this else _Shares(*(a + b for a, b in zip(before, this, strict=True)))
    return {
        part: _Shares(of.heads / _some(of.queries), of.even / _some(of.queries), of.queries)
        for part, of in totals.items()
    }


def _some(queries: Tensor) -> Tensor:
    return queries.clamp_min(1)[:, None]


def _keys(part: str, rows: Sequence[str], columns: Sequence[str]) -> dict[str, Tensor]:
    # As in describe_heads, a decoder's self-attention asks for the token that it reads.
    patterns = token_patterns(part, columns if part.endswith("self_attention") else rows, columns)
    groups = {name: tokens.expand(len(rows), -1) for name, tokens in token_groups(columns).items() if name != ALL}
    return patterns | groups


def describe_claim(claim: Claim) -> str:
    """Put a claim into a sentence, with the measured share."""
    part = claim.part.rpartition(".")[2]
    doing = "writing" if claim.part.startswith("decoder") else "reading"
    of = {"cross_attention": " of the source", "self_attention": " that it has written"}.get(part, "")
    keys = _PLACES[part].get(claim.keys, claim.keys + of * claim.keys.startswith("the "))
    return (
        f"{doing} {claim.queries}, it attends to {keys}: {100 * claim.share:.0f} % of its weight, measured over "
        f"{claim.inputs} inputs (evenly spread: {100 * claim.even:.0f} %)"
    )


def token_groups(pieces: Sequence[str]) -> dict[str, Tensor]:
    """Group tokens by kind, such as the first number. Each kind maps to a mask of `pieces`, 0 or 1, of shape (L,)."""
    kinds = [_kind(piece) for piece in pieces]
    groups = {ALL: [True] * len(pieces)}
    for kind in ("number", "word"):
        runs = list(_runs(pieces, kinds, kind))
        for name, run in (("first", runs[:1]), ("last", runs[-1:]), ("second", runs[1:2])):
            groups[f"the {name} {kind}"] = [i in set().union(*run) for i in range(len(pieces))]
    return {name: torch.tensor(tokens, dtype=torch.float32) for name, tokens in groups.items()}


def _kind(piece: str) -> str:
    letters = piece.strip("␣")
    if letters.startswith("<") and letters.endswith(">"):
        return "special"
    if letters and all(unicodedata.category(letter).startswith("N") for letter in letters):
        return "number"
    return "word" if letters and all(unicodedata.category(letter).startswith("L") for letter in letters) else "other"


def _runs(pieces: Sequence[str], kinds: Sequence[str], kind: str) -> Iterator[set[int]]:
    """Find the positions of each number or word: neighbouring tokens of one kind without a space in between."""
    run: set[int] = set()
    for i, piece in enumerate(pieces):
        goes_on = kinds[i] == kind and not piece.startswith("␣") and not (run and pieces[i - 1].endswith("␣"))
        if run and not goes_on:
            yield run
            run = set()
        if kinds[i] == kind:
            run.add(i)
    if run:
        yield run


_QUERIES = list(token_groups([]))
