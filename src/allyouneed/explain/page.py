"""A trace as one HTML page that needs no network and no other file."""

from html import escape
from pathlib import Path
from string import Template

from ..files import to_json
from ..translator import Translator
from .draw import to_svg
from .figures import FIGURES
from .trace import Trace, attention_label, attentions, describe_heads
from .values import MOST_CANDIDATES

_PAGE = Path(__file__).with_name("page.html")


def build_page(trace: Trace, translator: Translator) -> str:
    """The page of a trace, as HTML. `translator` is the one that was traced."""
    config = translator.model.config
    sizes = (
        f"{config.encoder_layers} + {config.decoder_layers} layers, d_model {config.d_model}, "
        f"{config.heads} heads, {translator.model.parameter_count():,} parameters"
    )
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        text=escape(trace.text),
        translation=escape(trace.translation),
        sizes=sizes,
        pieces=_pieces(trace),
        numbers=_numbers(trace),
        steps=_steps(trace),
        ending=escape(trace.search.explain_ending()),
        note=f"<p>{escape(trace.note)}</p>" if trace.note else "",
        heads=_heads(trace),
        attention=_for_script(attention_layers(trace)),
        **{name: to_svg(draw(trace)) for name, draw in FIGURES.items()},
    )


def _pieces(trace: Trace) -> str:
    def row(pieces: list[str], ids: list[int]) -> str:
        return "".join(
            f"<span class=piece>{escape(piece)}<small>{i}</small></span>" for piece, i in zip(pieces, ids, strict=True)
        )

    target = ["<sos>", *trace.decoder_targets]
    return (
        f"<p class=label>source</p><p>{row(trace.source_pieces, trace.source_ids)}</p>"
        f"<p class=label>translation</p><p>{row(target, trace.target_ids)}</p>"
    )


def _numbers(trace: Trace) -> str:
    """Embedding, position and sum as numbers, for the first dimensions and the last."""
    embedding, position, whole = (trace.recording[f"source.{name}"] for name in ("embedding", "position", "sum"))
    dimensions = [*range(min(5, embedding.size(1))), embedding.size(1) - 1]
    head = "".join(f"<th>{dimension + 1}</th>" for dimension in dimensions)
    rows = []
    for index, piece in enumerate(trace.source_pieces):
        for label, x in (("embedding", embedding), ("+ position", position), ("= sum", whole)):
            cells = "".join(f"<td>{x[index, dimension]:+.4f}</td>" for dimension in dimensions)
            first = f"<th rowspan=3>{index}<th rowspan=3 class=mono>{escape(piece)}" if label == "embedding" else ""
            rows.append(f"<tr{' class=sum' if label.startswith('=') else ''}>{first}<td class=what>{label}</td>{cells}")
    return f"<table><thead><tr><th>position<th>token<th>dimension{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _steps(trace: Trace) -> str:
    """The most probable tokens at every step of the translation."""
    answer = trace.search.hypothesis.ids
    rows = []
    for t, piece in enumerate(trace.decoder_targets):
        prefix = tuple(answer[:t])
        if prefix not in trace.search.log_probabilities:
            break
        bars = "".join(
            f"<span class='candidate{' chosen' if trace.pieces[i] == piece else ''}'>"
            f"<i style='width:{100 * probability:.1f}%'></i>"
            f"<b>{escape(trace.pieces[i])}</b> {_percent(probability)}</span>"
            for i, probability in trace.search.best(prefix, MOST_CANDIDATES)
        )
        rows.append(f"<li><span class=written>{escape(piece)}</span>{bars}")
    return f"<ol class=steps>{''.join(rows)}</ol>"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else "&lt; 0.1 %"


def _heads(trace: Trace) -> str:
    rows = []
    for head in describe_heads(trace):
        shares = (head.same, head.previous, head.next, head.sos, head.eos)
        cells = "".join(f"<td style='--share:{share:.2f}'>{100 * share:.0f}</td>" for share in shares)
        rows.append(
            f"<tr><td class=mono>{attention_label(head.part)}<td>{head.head}"
            f"<td>{escape(head.role)}<td>{head.entropy:.2f}{cells}"
        )
    return (
        "<table><thead><tr><th>attention<th>head<th>attends mostly to<th>entropy, bits<th>same position, %<th>previous"
        f"<th>next<th>&lt;sos&gt;<th>&lt;eos&gt;</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def attention_layers(trace: Trace) -> list[dict[str, object]]:
    """What a page draws: the weights of every attention and head, as whole numbers from 0 to 255."""
    return [
        {
            "part": name,
            "name": attention_label(name),
            "rows": trace.source_pieces if name.startswith("encoder") else trace.decoder_targets,
            "columns": trace.decoder_inputs if name.endswith("self_attention") else trace.source_pieces,
            "heads": [(head * 255).round().int().tolist() for head in weights],
        }
        for name, weights in attentions(trace).items()
    ]


def _for_script(data: object) -> str:
    """JSON that cannot end the script element around it."""
    return to_json(data, separators=(",", ":")).replace("<", "\\u003c")
