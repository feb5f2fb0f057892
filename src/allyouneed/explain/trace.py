"""Everything there is to tell about one translation, as tensors and numbers: what the pictures are drawn from."""

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
    """One sentence on its way through a model. The decoder is given `<sos> …` and asked for `… <eos>`."""

    text: str
    translation: str
    source_ids: list[int]
    target_ids: list[int]  # start sign, output, end sign
    source_pieces: list[str]  # the pieces of the source, signs included
    decoder_inputs: list[str]  # what the decoder is given, place by place
    decoder_targets: list[str]  # what it is asked for
    recording: Recording  # a recording of this one sentence, without the batch's axis
    search: SearchTrace
    pieces: dict[int, str]  # of every id that the search's best candidates name


@torch.inference_mode()
def trace_translation(translator: Translator, text: str) -> Trace:
    """Translate a text and record all of it. Refuses an empty one, and one too long for the model."""
    if not text.strip():
        raise InputError("there is nothing to explain in an empty text; give a sentence")
    text = translator.bundle.normalization(text)
    tokenizer, writer, model = translator.source_tokenizer, translator.target_tokenizer, translator.model
    source, longest = tokenizer.encode(text), model.config.max_length
    if len(source) > longest:
        raise InputError(
            f"the text has {len(source)} tokens with its signs, but this model reads {longest} at most; "
            "give a shorter one, such as a sentence of it"
        )
    search = trace_search(translator, text)
    target = [writer.sos_id, *search.hypothesis.ids, writer.eos_id][: longest + 1]
    device = next(model.parameters()).device
    with recorded(model) as seen:
        model(torch.tensor([source], device=device), torch.tensor([target[:-1]], device=device))
    alone = {name: (x if name.endswith(".position") else x[0]).float().cpu() for name, x in seen.items()}
    mentioned = {word for beginning in search.log_probabilities for word, _ in search.best(beginning, 8)}
    mentioned |= {word for beginning in search.log_probabilities for word in beginning}
    mentioned |= {int(i) for name, x in alone.items() if name.endswith(".logits") for i in x.argmax(-1)}
    return Trace(
        text=text,
        translation=writer.decode(search.hypothesis.ids),
        source_ids=source,
        target_ids=target,
        source_pieces=tokenizer.pieces(source),
        decoder_inputs=writer.pieces(target[:-1]),
        decoder_targets=writer.pieces(target[1:]),
        recording=alone,
        search=search,
        pieces=dict(zip(sorted(mentioned), writer.pieces(sorted(mentioned)), strict=True)),
    )


@dataclass(frozen=True, slots=True)
class Head:
    """What one head does, averaged over the places that look. Shares are of its weight, 0 to 1; entropy in bits."""

    part: str
    head: int  # counted from 1
    entropy: float
    itself: float
    previous: float
    next: float
    start: float  # the start sign
    end: float  # the end sign
    role: str


def describe_heads(trace: Trace) -> list[Head]:
    """What each head of each attention does with this sentence."""
    found = []
    for part, weights in attentions(trace).items():
        for number, head in enumerate(weights, start=1):
            found.append(_head(part, number, head, crossing=part.endswith("cross_attention")))
    return found


def attentions(trace: Trace) -> dict[str, Tensor]:
    """The weights (H, T, S) of every attention, encoder first."""
    return {name: x for name, x in trace.recording.items() if name.endswith(("attention",)) and x.dim() == 3}


def _head(part: str, number: int, weights: Tensor, *, crossing: bool) -> Head:
    rows, columns = weights.shape
    entropy = float(-(weights * weights.clamp_min(1e-12).log2()).sum(-1).mean())

    def along(offset: int) -> float:
        return float(weights.diagonal(offset).sum() / rows)

    # In cross-attention place t writes word t + 1: looking at the same place is looking at column t + 1.
    shift = 1 if crossing else 0
    shares = {
        "the same place" if crossing else "itself": along(shift),
        "the place before" if crossing else "the one before": along(shift - 1),
        "the place after" if crossing else "the one after": along(shift + 1),
        "the start sign": float(weights[:, 0].mean()),
        "the end sign": float(weights[:, -1].mean()) if crossing or part.startswith("encoder") else 0.0,
    }
    role, share = max(shares.items(), key=lambda item: item[1])
    if share < 0.4:
        even = math.log2(columns) if crossing or part.startswith("encoder") else _mean_log(rows)
        role = "spread widely" if entropy > 0.8 * even else "by content"
    itself, previous, following, start, end = shares.values()
    return Head(part, number, entropy, itself, previous, following, start, end, role)


def _mean_log(rows: int) -> float:
    return sum(math.log2(t + 1) for t in range(rows)) / rows


def attention_label(part: str) -> str:
    """What a page calls an attention: `decoder.layers.0.cross_attention` is the decoder's layer 1."""
    stack, _, number, what = part.split(".")
    return f"{stack} {int(number) + 1}, {what.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class Stage:
    """The residual stream after one sublayer: mean length of its vectors, and how far they moved, in shares of it."""

    part: str
    norm: float
    change: float


def residual_stream(trace: Trace, stack: str) -> list[Stage]:
    """The stream of "encoder" or "decoder", from the sum of embedding and position up."""
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
    """Which source piece each written piece leans on, (T, S): cross-attention, the mean of a layer's heads.

    Of the same layer as the alignments of a translation.
    """
    crossing = [x for name, x in attentions(trace).items() if name.endswith("cross_attention")]
    return crossing[alignment_layer(len(crossing))].mean(0)
