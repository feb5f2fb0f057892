"""A story as numbers for other programs: what each figure is drawn from, under the figure's name."""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from .trace import Trace, alignment_matrix, attentions, describe_heads, residual_stream

MOST_CANDIDATES = 5


def trace_values(story: Trace) -> dict[str, Any]:
    """The story as plain data for JSON; weights, probabilities and vectors to four digits."""
    return {
        "text": story.text,
        "translation": story.translation,
        "source": [{"id": i, "piece": piece} for i, piece in zip(story.source_ids, story.source_pieces, strict=True)],
        "given": story.decoder_inputs,
        "asked": story.decoder_targets,
        "why": story.search.why_it_ended(),
        "embedding": {part: _plain(story.recording[f"source.{part}"]) for part in ("embedding", "position", "sum")},
        "attention": {name: _plain(x) for name, x in attentions(story).items()},
        "heads": [asdict(head) for head in describe_heads(story)],
        "steps": _steps(story),
        "tree": _tree(story),
        "stream": {
            stack: [asdict(stage) for stage in residual_stream(story, stack)] for stack in ("encoder", "decoder")
        },
        "lens": _lens(story),
        "alignment": _plain(alignment_matrix(story)),
    }


def _plain(x: Tensor) -> Any:
    return [_plain(row) for row in x] if x.dim() > 1 else [round(v, 4) for v in x.tolist()]


def _steps(story: Trace) -> list[list[dict[str, Any]]]:
    """The best candidates at every step of the answer."""
    answer = story.search.hypothesis.ids
    beginnings = [tuple(answer[:t]) for t in range(len(answer) + 1)]
    return [
        [
            {"piece": story.pieces[i], "probability": round(chance, 4)}
            for i, chance in story.search.best(b, MOST_CANDIDATES)
        ]
        for b in beginnings
        if b in story.search.log_probabilities
    ]


def _tree(story: Trace) -> list[dict[str, Any]]:
    """Every beginning the search went on with, and its score if it could end there."""
    ended = story.search.ended()
    return [
        {
            "pieces": [story.pieces[i] for i in beginning],
            "ended": round(ended[beginning], 4) if beginning in ended else None,
        }
        for beginning in story.search.log_probabilities
    ]


def _lens(story: Trace) -> dict[str, list[dict[str, Any]]]:
    """What each layer of the decoder would say at every place, and how sure it is."""
    said = {}
    for name, logits in story.recording.items():
        if name.startswith("decoder.layers.") and name.endswith(".logits"):
            sure, words = torch.max(logits.softmax(-1), -1)
            said[name.removesuffix(".logits")] = [
                {"piece": story.pieces[i], "probability": round(chance, 4)}
                for i, chance in zip(words.tolist(), sure.tolist(), strict=True)
            ]
    return said
