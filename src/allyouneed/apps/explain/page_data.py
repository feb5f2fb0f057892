"""A trace as the data of the page, in the format that web/explain.js describes."""

from collections.abc import Sequence
from typing import Any

from ...translator import Translator
from ...translator.likelihood import alignment_layer
from .claims import Claim, describe_claim
from .heads import NO_PATTERN, SPREAD, describe_finding, describe_heads
from .search_trace import with_parents
from .tensors import all_tensors, attention_tensors, count_drawn_tokens
from .trace import Trace, attentions, residual_stream
from .values import lens_values, search_steps, significant

MAX_NODES = 120  # in the tree of a search


def build_page_data(trace: Trace, translator: Translator, claims: Sequence[Claim] = ()) -> dict[str, Any]:
    """Collect everything that the page shows.

    `translator` made the trace; `claims` describe its heads on other texts.
    """
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
        "claims": [{"attention": one.part, "head": one.head, "text": describe_claim(one)} for one in claims],
        "heads": _heads(trace, drawn),
        "alignment": crossing[alignment_layer(len(crossing))],
        "lens": [
            {"title": f"after layer {number}", "tokens": tokens[:drawn]}
            for number, tokens in enumerate(lens_values(trace).values(), start=1)
        ],
        "stream": [
            {"stack": stack, "part": stage.part, "norm": significant(stage.norm), "change": significant(stage.change)}
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
    long = [f"{count} {side} tokens" for side, count in lengths.items() if count > drawn]
    if not long:
        return ""
    return (
        f"Only the first {drawn} of {' and of '.join(long)} are drawn. Weights of tokens that are not drawn are "
        "missing, so those in a row can sum to less than 1."
    )


def _heads(trace: Trace, drawn: int) -> list[dict[str, Any]]:
    heads = []
    for head in describe_heads(trace):
        weights = attentions(trace)[head.part][head.head - 1][:drawn, :drawn]
        compared = weights.clone()
        if head.part.endswith("self_attention") and len(weights) > 1:
            compared[0] = 0  # the first token attends only to itself
        row, column = divmod(int(compared.argmax()), weights.shape[1])
        heads.append(
            {
                "attention": head.part,
                "head": head.head,
                "finding": describe_finding(head),
                "without": head.role if head.role in (NO_PATTERN, SPREAD) else None,
                "entropy": round(head.entropy, 3),
                "strongest": {"row": row, "column": column, "weight": significant(float(weights[row, column]))},
            }
        )
    return heads


def _tree(trace: Trace, drawn: int) -> dict[str, Any]:
    """Return the expanded prefixes of at most `drawn` tokens: those of the translation, then the most probable ones."""
    answer = tuple(trace.search.hypothesis.ids)
    prefixes = trace.search.ranked()
    kept = with_parents([prefix for prefix in prefixes if len(prefix) <= drawn][:MAX_NODES])
    number = {prefix: index for index, prefix in enumerate(kept)}
    ended = trace.search.ended()
    nodes = [
        {
            "piece": trace.pieces[prefix[-1]] if prefix else "<sos>",
            "parent": number[prefix[:-1]] if prefix else None,
            "total": significant(trace.search.log_probability(prefix)),
            "chosen": answer[: len(prefix)] == prefix,
            "ended": significant(ended[prefix]) if prefix in ended else None,
        }
        for prefix in kept
    ]
    return {"nodes": nodes, "expanded": len(prefixes)}
