"""Every tensor of a trace for a page: named, reduced if it is large, and packed."""

import math
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .trace import Trace, attention_label, attentions

# Positions of a sentence that a page draws; the first limit at which all weights fit is used.
TOKEN_LIMITS = (64, 48, 32, 16)
MAX_WEIGHTS = 600_000  # in all attentions of a page together
MAX_EXACT = 80_000  # in the queries, keys and values with which a page shows how weights are computed
MAX_VALUES = 300_000  # in all tensors of a page together, without attention weights
LIMITS = (64, 32, 16, 8, 4)  # columns of a tensor; the first limit at which all tensors fit is used
LIKELY = 32  # columns of logits
_MASKED = -32768

_EXACT = ("query", "key", "value")
_PARTS = {
    "query": "queries Q", "key": "keys K", "value": "values V", "scores": "scores QKᵀ / √d_k", "": "weights",
    "heads": "output of each head, weights · V", "output": "output added to the residual stream",
    "hidden": "hidden layer, after the activation", "norm": "output of the norm",
    "logits": "logits, if this layer were the last",
    "embedding": "embedding · √d_model", "position": "position", "sum": "embedding + position",
}  # fmt: skip


def pack(values: Tensor) -> dict[str, Any]:
    """Pack numbers in 16 bits each, for JSON: value = low + (n + 32767) / 65534 · (high − low); n = −32768 means −∞."""
    finite = values[values.isfinite()]
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    share = (values - low) / ((high - low) or 1.0)
    steps = torch.where(values.isfinite(), (share * 65534 - 32767).round(), torch.tensor(float(_MASKED)))
    data = b64encode(steps.to(torch.int16).numpy().astype("<i2").tobytes()).decode("ascii")
    return {"shape": list(values.shape), "low": low, "high": high, "data": data}


def pack_exactly(values: Tensor) -> dict[str, Any]:
    """Pack numbers in float32, for JSON."""
    data = b64encode(values.float().contiguous().numpy().astype("<f4").tobytes()).decode("ascii")
    return {"shape": list(values.shape), "float32": data}


def count_drawn_tokens(trace: Trace) -> int:
    """Return how many tokens of each side a page may draw, so that its attention weights stay small."""

    def fits(limit: int) -> bool:
        weights = attentions(trace).values()
        return sum(len(x) * min(x.shape[1], limit) * min(x.shape[2], limit) for x in weights) <= MAX_WEIGHTS

    return next((limit for limit in TOKEN_LIMITS if fits(limit)), TOKEN_LIMITS[-1])


def attention_tensors(trace: Trace) -> list[dict[str, Any]]:
    """Return the weights of every attention, (H, T, S), for the tokens that a page draws.

    The last attentions, as many as a page has room for, also have the queries, keys and values of all heads. If a text
    is too long to be drawn as a whole, no attention has them.
    """
    drawn, left, exact = count_drawn_tokens(trace), MAX_EXACT, set[str]()
    for name, weights in reversed(attentions(trace).items()):
        parts = [trace.recording[f"{name}.{part}"] for part in _EXACT if f"{name}.{part}" in trace.recording]
        left -= sum(part.numel() for part in parts)
        if parts and left >= 0 and max(weights.shape[1:]) <= drawn:
            exact.add(name)
    return [
        {
            **{part: pack_exactly(trace.recording[f"{name}.{part}"]) for part in _EXACT * (name in exact)},
            "name": name,
            "title": attention_label(name),
            "rows": "source" if name.startswith("encoder") else "target",
            "columns": "inputs" if name.endswith("self_attention") else "source",
            "weights": pack(weights[:, :drawn, :drawn]),
        }
        for name, weights in attentions(trace).items()
    ]


def all_tensors(trace: Trace, pieces: Sequence[str]) -> list[dict[str, Any]]:
    """Return every tensor of a trace except attention weights. `pieces` are all tokens of the target vocabulary.

    A tensor with more columns than the page has room for is reduced to its first columns, and logits to the columns of
    the most probable tokens; the `note` of the tensor says so.
    """
    tensors = {name: x for name, x in trace.recording.items() if name not in attentions(trace)}
    drawn = count_drawn_tokens(trace)
    cropped = {name: _crop_tokens(name, x, drawn) for name, x in tensors.items()}
    limit = next((limit for limit in LIMITS if _count(cropped, limit) <= MAX_VALUES), LIMITS[-1])
    return [_describe(name, tensors[name], x, limit, pieces) for name, x in cropped.items()]


def _crop_tokens(name: str, x: Tensor, drawn: int) -> Tensor:
    return x[..., :drawn, :drawn] if name.endswith("scores") else x[..., :drawn, :]


def _count(tensors: dict[str, Tensor], limit: int) -> int:
    return sum(math.prod(x.shape[:-1]) * min(x.shape[-1], limit) for x in tensors.values())


def _describe(name: str, whole: Tensor, x: Tensor, limit: int, pieces: Sequence[str]) -> dict[str, Any]:
    notes = []
    columns: str | list[str] = "dimension"
    if name.endswith("scores"):
        columns = "inputs" if "self_attention" in name else "source"
    if name.endswith("logits"):
        likely = x.softmax(-1).amax(0).topk(min(LIKELY, limit, x.shape[-1])).indices
        x, columns = x[:, likely], [pieces[token] for token in likely.tolist()]
        if len(likely) < whole.shape[-1]:
            notes.append(f"the {len(likely)} most probable of {whole.shape[-1]:,} tokens")
    elif x.shape[-1] > limit:
        x = x[..., :limit]
        notes.append(f"the first {limit} of {whole.shape[-1]:,} columns")
    if x.shape[-2] < whole.shape[-2]:
        notes.append(f"the first {x.shape[-2]} of {whole.shape[-2]:,} tokens")
    return {
        "name": name,
        "group": _group(name),
        "title": _title(name),
        "rows": _rows(name),
        "columns": columns,
        "note": f"Reduced: {' and '.join(notes)}." if notes else "",
        "values": pack(x),
    }


def _rows(name: str) -> str:
    if name.startswith(("source", "encoder")) or name.endswith(("cross_attention.key", "cross_attention.value")):
        return "source"
    reads = name.startswith("target") or name.endswith(("self_attention.key", "self_attention.value"))
    return "inputs" if reads else "target"


def _group(name: str) -> str:
    stack, *rest = name.split(".")
    if stack in ("source", "target"):
        return f"{stack} input"
    return f"{stack} {int(rest[1]) + 1}" if rest[:1] == ["layers"] else "output of the stacks"


def _title(name: str) -> str:
    stack, *rest = name.split(".")
    if not rest:
        return {"encoder": "memory: the encoder's output", "decoder": "the decoder's output"}.get(name, name)
    if rest == ["norm"]:
        return f"closing norm of the {stack}"
    part, what = ("", rest[-1]) if rest[-1] in _PARTS and len(rest) < 4 else (rest[2], rest[3] if len(rest) > 3 else "")
    label = part.removesuffix("_residual")
    label = label.replace("_", "-" if label.endswith("attention") else " ")
    if part.endswith("_residual"):
        return f"{label}: {_PARTS['norm'] if what else 'residual stream after add & norm'}"
    return f"{label}: {_PARTS[what]}" if label else _PARTS[what]
