"""A trace as numbers for other programs, grouped by figure."""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from .heads import describe_heads
from .trace import Trace, alignment_matrix, attentions, residual_stream

MOST_CANDIDATES = 5


def trace_values(trace: Trace) -> dict[str, Any]:
    """Return the trace as plain data for JSON: weights and vectors with four decimals, probabilities with 4 digits."""
    return {
        "text": trace.text,
        "translation": trace.translation,
        "source": [{"id": i, "piece": piece} for i, piece in zip(trace.source_ids, trace.source_pieces, strict=True)],
        "decoder_inputs": trace.decoder_inputs,
        "decoder_targets": trace.decoder_targets,
        "note": trace.note,
        "ending": trace.search.explain_ending(),
        "embedding": {part: _plain(trace.recording[f"source.{part}"]) for part in ("embedding", "position", "sum")},
        "attention": {name: _plain(x) for name, x in attentions(trace).items()},
        "heads": [asdict(head) for head in describe_heads(trace)],
        "steps": search_steps(trace),
        "tree": _tree(trace),
        "stream": {
            stack: [asdict(stage) for stage in residual_stream(trace, stack)] for stack in ("encoder", "decoder")
        },
        "lens": lens_values(trace),
        "alignment": _plain(alignment_matrix(trace)),
    }


def _plain(x: Tensor) -> Any:
    return [_plain(row) for row in x] if x.dim() > 1 else [round(v, 4) for v in x.tolist()]


def significant(value: float) -> float:
    """Round a number to four significant digits, so that a small number does not become 0."""
    return float(f"{value:.4g}")


def search_steps(trace: Trace) -> list[list[dict[str, Any]]]:
    """List the most probable tokens at every step of the translation, and the chosen one if it is not among them."""
    search = trace.search
    steps = []
    for t, chosen in enumerate([*search.hypothesis.ids, search.eos_id]):
        prefix = tuple(search.hypothesis.ids[:t])
        if prefix not in search.log_probabilities:
            break
        candidates = dict(search.best(prefix, MOST_CANDIDATES))
        candidates.setdefault(chosen, float(search.log_probabilities[prefix][chosen].exp()))
        steps.append(
            [
                {"piece": trace.pieces[i], "probability": significant(probability), "chosen": i == chosen}
                for i, probability in candidates.items()
            ]
        )
    return steps


def _tree(trace: Trace) -> list[dict[str, Any]]:
    """List every prefix that the search expanded, with its score if it could end there."""
    ended = trace.search.ended()
    return [
        {
            "pieces": [trace.pieces[i] for i in prefix],
            "ended": round(ended[prefix], 4) if prefix in ended else None,
        }
        for prefix in trace.search.log_probabilities
    ]


def lens_values(trace: Trace) -> dict[str, list[dict[str, Any]]]:
    """Return the logit lens: the most probable token of each decoder layer at every position, with its probability."""
    lens = {}
    for name, logits in trace.recording.items():
        if name.startswith("decoder.layers.") and name.endswith(".logits"):
            probabilities, tokens = torch.max(logits.softmax(-1), -1)
            lens[name.removesuffix(".logits")] = [
                {"piece": trace.pieces[i], "probability": significant(probability)}
                for i, probability in zip(tokens.tolist(), probabilities.tolist(), strict=True)
            ]
    return lens
