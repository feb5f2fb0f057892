"""Everything that is recorded of one translation, as tensors and numbers; the figures are drawn from it."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..decode import alignment_layer
from ..errors import InputError
from ..translator import Translator
from .recording import Recording, recorded
from .search_trace import SearchTrace, trace_search


@dataclass(frozen=True, slots=True)
class Trace:
    """One sentence on its way through a model. The decoder reads `<sos> …` and predicts `… <eos>`."""

    text: str
    translation: str
    source_ids: list[int]
    target_ids: list[int]  # with <sos> and <eos>
    source_pieces: list[str]  # the tokens of the source as text, special tokens included
    decoder_inputs: list[str]  # what the decoder reads, position by position
    decoder_targets: list[str]  # what it predicts
    recording: Recording  # of this sentence, without the batch axis
    search: SearchTrace
    pieces: dict[int, str]  # the text of every token that a figure names
    note: str  # how `Translator` translates the text, where that differs; empty if it does not


@torch.inference_mode()
def trace_translation(translator: Translator, text: str) -> Trace:
    """Translate a text and record everything. Refuses an empty text, and one too long for the model."""
    if not text.strip():
        raise InputError("explain needs a text; got an empty one")
    text = translator.bundle.normalization(text)
    tokenizer, target_tokenizer, model = translator.source_tokenizer, translator.target_tokenizer, translator.model
    source, longest = tokenizer.encode(text), model.config.max_length
    if len(source) > longest:
        raise InputError(
            f"the text has {len(source)} tokens with <sos> and <eos>, but this model reads at most {longest}; "
            "give a shorter one, such as a sentence of it"
        )
    search = trace_search(translator, text)
    target = [target_tokenizer.sos_id, *search.hypothesis.ids, target_tokenizer.eos_id][: longest + 1]
    device = next(model.parameters()).device
    with recorded(model) as recording:
        model(torch.tensor([source], device=device), torch.tensor([target[:-1]], device=device))
    alone = {name: (x if name.endswith(".position") else x[0]).float().cpu() for name, x in recording.items()}
    mentioned = {token for prefix in search.log_probabilities for token, _ in search.best(prefix, 8)}
    mentioned |= {token for prefix in search.log_probabilities for token in prefix}
    mentioned |= {int(i) for name, x in alone.items() if name.endswith(".logits") for i in x.argmax(-1)}
    translation = target_tokenizer.decode(search.hypothesis.ids)
    return Trace(
        text=text,
        translation=translation,
        source_ids=source,
        target_ids=target,
        source_pieces=tokenizer.pieces(source),
        decoder_inputs=target_tokenizer.pieces(target[:-1]),
        decoder_targets=target_tokenizer.pieces(target[1:]),
        recording=alone,
        search=search,
        pieces=dict(zip(sorted(mentioned), target_tokenizer.pieces(sorted(mentioned)), strict=True)),
        note=_note(translation, translator(text)),
    )


def _note(traced: str, translated: str) -> str:
    if traced == translated:
        return ""
    return (
        f"`translate` gives “{translated}” for this text. Its glossary, copied spans, copied texts, splitting into "
        "sentences, sampling and int8 are not part of the search that is explained here."
    )


@dataclass(frozen=True, slots=True)
class Head:
    """Where one head attends, averaged over all queries: shares of its weight, 0 to 1; entropy in bits."""

    part: str
    head: int  # counted from 1
    entropy: float
    same: float
    previous: float
    next: float
    sos: float
    eos: float
    role: str


def describe_heads(trace: Trace) -> list[Head]:
    """What each head of each attention does in this sentence."""
    heads = []
    for part, weights in attentions(trace).items():
        for number, head in enumerate(weights, start=1):
            heads.append(_head(part, number, head, crossing=part.endswith("cross_attention")))
    return heads


def attentions(trace: Trace) -> dict[str, Tensor]:
    """The weights (H, T, S) of every attention, encoder first."""
    return {name: x for name, x in trace.recording.items() if name.endswith("attention") and x.dim() == 3}


def _head(part: str, number: int, weights: Tensor, *, crossing: bool) -> Head:
    rows, columns = weights.shape
    entropy = float(-(weights * weights.clamp_min(1e-12).log2()).sum(-1).mean())

    def along(offset: int) -> float:
        return float(weights.diagonal(offset).sum() / rows)

    # In cross-attention position t predicts token t + 1, so its "same position" is column t + 1.
    shift = 1 if crossing else 0
    shares = {
        "same position": along(shift),
        "previous position": along(shift - 1),
        "next position": along(shift + 1),
        "<sos>": float(weights[:, 0].mean()),
        "<eos>": float(weights[:, -1].mean()) if crossing or part.startswith("encoder") else 0.0,
    }
    role, share = max(shares.items(), key=lambda item: item[1])
    if share < 0.4:
        even = math.log2(columns) if crossing or part.startswith("encoder") else _mean_log(rows)
        role = "spread evenly" if entropy > 0.8 * even else "by content"
    same, previous, following, sos, eos = shares.values()
    return Head(part, number, entropy, same, previous, following, sos, eos, role)


def _mean_log(rows: int) -> float:
    return sum(math.log2(t + 1) for t in range(rows)) / rows


def attention_label(part: str) -> str:
    """The label of an attention: `decoder.layers.0.cross_attention` is the decoder's layer 1."""
    stack, _, number, what = part.split(".")
    return f"{stack} {int(number) + 1}, {what.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class Stage:
    """The residual stream after one sublayer: the mean norm of its vectors, and their mean relative change."""

    part: str
    norm: float
    change: float


def residual_stream(trace: Trace, stack: str) -> list[Stage]:
    """The residual stream of "encoder" or "decoder", from the sum of embedding and position to the last sublayer."""
    before = trace.recording["source.sum" if stack == "encoder" else "target.sum"]
    stages = [Stage("embedding", float(before.norm(dim=-1).mean()), 0.0)]
    for name, after in trace.recording.items():
        if name.startswith(f"{stack}.") and name.endswith("_residual"):
            moved = (after - before).norm(dim=-1) / before.norm(dim=-1)
            number, _, part = name.removeprefix(f"{stack}.layers.").removesuffix("_residual").partition(".")
            stages.append(
                Stage(
                    f"{int(number) + 1} {part.replace('_', ' ')}", float(after.norm(dim=-1).mean()), float(moved.mean())
                )
            )
            before = after
    return stages


def alignment_matrix(trace: Trace) -> Tensor:
    """Cross-attention of target tokens to source tokens, (T, S): the mean over the heads of a layer.

    The layer is the one that the alignments of a translation use.
    """
    crossing = [x for name, x in attentions(trace).items() if name.endswith("cross_attention")]
    return crossing[alignment_layer(len(crossing))].mean(0)
