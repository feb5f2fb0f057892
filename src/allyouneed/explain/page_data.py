"""A trace as the data of the page, in the format that web/explain.js describes."""

from typing import Any

from ..decode import alignment_layer
from ..translator import Translator
from .heads import describe_finding, describe_heads
from .search_trace import Prefix
from .tensors import all_tensors, attention_tensors, count_drawn_tokens
from .trace import Trace, attentions, residual_stream
from .values import lens_values, search_steps

MAX_NODES = 120  # of the tree of a search


def build_page_data(trace: Trace, translator: Translator) -> dict[str, Any]:
    """Everything that the page shows. `translator` is the one that was traced."""
    config, decode = translator.model.config, translator.decode
    drawn = count_drawn_tokens(trace)
    crossing = [name for name in attentions(trace) if name.endswith("cross_attention")]
    vocabulary = translator.target_tokenizer.pieces(range(len(translator.target_tokenizer)))
    return {
        "text": trace.whole_text,
        "output": trace.output,
        "notes": [note for note in (trace.note, _cropped(trace, drawn)) if note],
        "model": (
            f"{config.encoder_layers} + {config.decoder_layers} layers, d_model {config.d_model}, "
            f"{config.heads} heads, {translator.model.parameter_count():,} parameters"
        ),
        "source": _tokens(trace.source_pieces[:drawn], trace.source_ids[:drawn]),
        "target": _tokens(trace.decoder_targets[:drawn], trace.target_ids[1:][:drawn]),
        "inputs": _tokens(trace.decoder_inputs[:drawn], trace.target_ids[:-1][:drawn]),
        "search": {
            "kind": _kind(decode.beam, decode.sample),
            "beam": decode.beam,
            "ending": trace.search.explain_ending(),
        },
        "steps": search_steps(trace)[:drawn],
        "tree": _tree(trace, drawn),
        "attention": attention_tensors(trace),
        "heads": _heads(trace, drawn),
        "alignment": crossing[alignment_layer(len(crossing))],
        "lens": [
            {"title": f"after layer {number}", "tokens": tokens[:drawn]}
            for number, tokens in enumerate(lens_values(trace).values(), start=1)
        ],
        "stream": [
            {"stack": stack, "part": stage.part, "norm": round(stage.norm, 4), "change": round(stage.change, 4)}
            for stack in ("encoder", "decoder")
            for stage in residual_stream(trace, stack)
        ],
        "tensors": all_tensors(trace, vocabulary),
    }


def _kind(beam: int, sample: bool) -> str:
    return "sample" if sample else "beam" if beam > 1 else "greedy"


def _tokens(pieces: list[str], ids: list[int]) -> list[dict[str, Any]]:
    return [{"piece": piece, "id": i} for piece, i in zip(pieces, ids, strict=True)]


def _cropped(trace: Trace, drawn: int) -> str:
    lengths = {"source": len(trace.source_pieces), "translation": len(trace.decoder_targets)}
    long = [f"{count} of the {side}" for side, count in lengths.items() if count > drawn]
    return f"Of {' and '.join(long)} tokens the first {drawn} are drawn." if long else ""


def _heads(trace: Trace, drawn: int) -> list[dict[str, Any]]:
    heads = []
    for head in describe_heads(trace):
        weights = attentions(trace)[head.part][head.head - 1][:drawn, :drawn]
        compared = weights.clone()
        if head.part.endswith("self_attention") and len(weights) > 1:
            compared[0] = 0  # the first token sees nothing but itself
        row, column = divmod(int(compared.argmax()), weights.shape[1])
        heads.append(
            {
                "attention": head.part,
                "head": head.head,
                "finding": describe_finding(head),
                "entropy": round(head.entropy, 3),
                "strongest": {"row": row, "column": column, "weight": round(float(weights[row, column]), 4)},
            }
        )
    return heads


def _tree(trace: Trace, drawn: int) -> dict[str, Any]:
    """The prefixes that the search expanded, up to `drawn` tokens: the translation's, then the most probable ones."""
    answer = tuple(trace.search.hypothesis.ids)
    prefixes = list(trace.search.log_probabilities)
    totals = {prefix: trace.search.log_probability(prefix) for prefix in prefixes}
    order = sorted(prefixes, key=lambda prefix: (answer[: len(prefix)] != prefix, -totals[prefix] / (len(prefix) or 1)))
    kept = _with_parents([prefix for prefix in order if len(prefix) <= drawn][:MAX_NODES])
    number = {prefix: index for index, prefix in enumerate(kept)}
    ended = trace.search.ended()
    nodes = [
        {
            "piece": trace.pieces[prefix[-1]] if prefix else "<sos>",
            "parent": number[prefix[:-1]] if prefix else None,
            "total": round(totals.get(prefix, 0.0), 4),
            "chosen": answer[: len(prefix)] == prefix,
            "ended": round(ended[prefix], 4) if prefix in ended else None,
        }
        for prefix in kept
    ]
    return {"nodes": nodes, "expanded": len(prefixes)}


def _with_parents(prefixes: list[Prefix]) -> list[Prefix]:
    whole = {prefix[:length] for prefix in prefixes for length in range(len(prefix) + 1)}
    return sorted(whole, key=lambda prefix: (len(prefix), prefix))
