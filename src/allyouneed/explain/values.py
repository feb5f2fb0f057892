"""A trace as numbers for other programs: what each figure is drawn from, under the figure's name."""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from .trace import Trace, alignment_matrix, attentions, describe_heads, residual_stream

MOST_CANDIDATES = 5


def trace_values(trace: Trace) -> dict[str, Any]:
    """The trace as plain data for JSON; weights, probabilities and vectors to four digits."""
    return {
        "text": trace.text,
        "translation": trace.translation,
        "source": [{"id": i, "piece": piece} for i, piece in zip(trace.source_ids, trace.source_pieces, strict=True)],
        "given": trace.decoder_inputs,
        "asked": trace.decoder_targets,
        "why": trace.search.explain_ending(),
        "embedding": {part: _plain(trace.recording[f"source.{part}"]) for part in ("embedding", "position", "sum")},
        "attention": {name: _plain(x) for name, x in attentions(trace).items()},
        "heads": [asdict(head) for head in describe_heads(trace)],
        "steps": _steps(trace),
        "tree": _tree(trace),
        "stream": {
            stack: [asdict(stage) for stage in residual_stream(trace, stack)] for stack in ("encoder", "decoder")
        },
        "lens": _lens(trace),
        "alignment": _plain(alignment_matrix(trace)),
    }


def _plain(x: Tensor) -> Any:
    return [_plain(row) for row in x] if x.dim() > 1 else [round(v, 4) for v in x.tolist()]


def _steps(trace: Trace) -> list[list[dict[str, Any]]]:
    """The best candidates at every step of the answer."""
    answer = trace.search.hypothesis.ids
    beginnings = [tuple(answer[:t]) for t in range(len(answer) + 1)]
    return [
        [
            {"piece": trace.pieces[i], "probability": round(chance, 4)}
            for i, chance in trace.search.best(b, MOST_CANDIDATES)
        ]
        for b in beginnings
        if b in trace.search.log_probabilities
    ]


def _tree(trace: Trace) -> list[dict[str, Any]]:
    """Every beginning the search went on with, and its score if it could end there."""
    ended = trace.search.ended()
    return [
        {
            "pieces": [trace.pieces[i] for i in beginning],
            "ended": round(ended[beginning], 4) if beginning in ended else None,
        }
        for beginning in trace.search.log_probabilities
    ]


def _lens(trace: Trace) -> dict[str, list[dict[str, Any]]]:
    """What each layer of the decoder would say at every place, and how sure it is."""
    said = {}
    for name, logits in trace.recording.items():
        if name.startswith("decoder.layers.") and name.endswith(".logits"):
            sure, words = torch.max(logits.softmax(-1), -1)
            said[name.removesuffix(".logits")] = [
                {"piece": trace.pieces[i], "probability": round(chance, 4)}
                for i, chance in zip(words.tolist(), sure.tolist(), strict=True)
            ]
    return said
