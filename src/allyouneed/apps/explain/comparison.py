"""Compare two translations of a text on one page: by two models, or at two moments of a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...errors import ConfigError
from ...nn.weights import set_weights
from ...run.checkpoint import read_tensors
from .heads import NO_PATTERN, SPREAD, describe_finding, describe_heads
from .trace import Trace, attention_label
from .values import search_steps


def load_moment(path: Path) -> Bundle:
    """Load the bundle in a folder, or the model of a run from a file in its `snapshots/`."""
    if path.suffix != ".safetensors":
        return Bundle.load(path)
    if path.parent.name != "snapshots" or not path.is_file():
        raise ConfigError(
            f"{path} is not a snapshot of a run; name the folder of a model, or a file such as "
            "runs/mine/snapshots/00000200.safetensors: train.average_checkpoints is how many a run keeps"
        )
    bundle = Bundle.load(path.parents[1])
    set_weights(bundle.model, read_tensors(path)[0])
    return bundle


def compare_traces(first: Trace, second: Trace) -> dict[str, Any]:
    """Find where two translations of a text diverge, and which heads differ in pattern, as plain data for the page.

    `parting` is None if the outputs are equal. Otherwise it has the tokens that both outputs begin with, and the most
    probable next tokens of each. `heads` are the heads that both models have and that follow a pattern in at least one.
    """
    then = {(head.part, head.head): head for head in describe_heads(second)}
    pairs = [(head, then[head.part, head.head]) for head in describe_heads(first) if (head.part, head.head) in then]
    differing = [
        {
            "attention": a.part,
            "head": a.head,
            "title": f"{attention_label(a.part)}, head {a.head}",
            "findings": [describe_finding(a), describe_finding(b)],
        }
        for a, b in pairs
        if a.role != b.role and not {a.role, b.role} <= {NO_PATTERN, SPREAD}
    ]
    return {"parting": _parting(first, second), "heads": differing, "common_heads": len(pairs)}


def _parting(first: Trace, second: Trace) -> dict[str, Any] | None:
    """Return the first position where the translations differ: the tokens before it, and both candidates there."""
    both = zip(first.decoder_targets, second.decoder_targets, strict=False)
    step = next((t for t, (a, b) in enumerate(both) if a != b), None)
    if step is None:  # two translations that are cut off at their limits may end at different lengths
        step = min(len(first.decoder_targets), len(second.decoder_targets))
        if len(first.decoder_targets) == len(second.decoder_targets):
            return None
    steps = [search_steps(one)[step : step + 1] for one in (first, second)]
    return {"step": step, "common": first.decoder_targets[:step], "candidates": [(*one, [])[0] for one in steps]}


def describe_comparison(comparison: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Describe the comparison in sentences, for a terminal."""
    sentences = []
    if parting := comparison["parting"]:
        chosen = [[one for one in candidates if one["chosen"]] for candidates in parting["candidates"]]
        tokens = [f"“{one[0]['piece']}” ({one[0]['probability']:.0%})" if one else "nothing" for one in chosen]
        sentences.append(
            f"The outputs part at token {parting['step'] + 1}: {names[0]} writes {tokens[0]}, {names[1]} {tokens[1]}."
        )
    else:
        sentences.append("The outputs are equal.")
    sentences.append(f"The pattern of {len(comparison['heads'])} of {comparison['common_heads']} heads differs.")
    return sentences
