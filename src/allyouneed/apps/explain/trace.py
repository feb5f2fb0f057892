"""The record of a translation, as tensors and numbers, from which the figures are drawn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import InputError
from ...translator import Segment, Translation, Translator
from ...translator.likelihood import alignment_layer, eval_copy
from ...translator.placeholders import separate_placeholders
from .recording import Recording, recorded
from .search_trace import SearchTrace, trace_search


@dataclass(frozen=True, slots=True)
class Trace:
    """A sentence on its way through a model. The decoder reads `<sos> …` and predicts `… <eos>`."""

    text: str
    translation: str
    whole_text: str  # the user's text, which is longer than `text` if it is translated in parts
    output: str  # the translation by `translate`
    source_ids: list[int]
    target_ids: list[int]  # with <sos> and <eos>
    source_pieces: list[str]  # the tokens of the source as text, with special tokens
    decoder_inputs: list[str]  # the tokens that the decoder reads, by position
    decoder_targets: list[str]  # the tokens that the decoder predicts
    recording: Recording  # of this sentence, without the batch axis
    search: SearchTrace
    pieces: dict[int, str]  # the text of every token that a figure names
    note: str  # says what the trace omits and what the translation must contain; may be empty


@torch.inference_mode()
def trace_translation(translator: Translator, text: str) -> Trace:
    """Translate a text as `translator` does, with all its settings, and record everything.

    The tensors are those of the model in float32, reading the source and the translation. Of a text that is translated
    in parts, only the first part is recorded; a text that `translator` would copy is translated. The note says so.
    Refuses an empty text, an ensemble of models, and a text that `translator` refuses.
    """
    if len(translator.bundles) > 1:
        raise InputError(
            f"explain shows the inside of one model; this is an ensemble of {len(translator.bundles)}: name one of them"
        )
    if not text.strip():
        raise InputError("explain needs a text; got an empty one")
    tokenizer, target_tokenizer, model = translator.source_tokenizer, translator.target_tokenizer, translator.model
    (whole,) = translator.translations([text])
    split = translator.using(copy_untranslatable=False, recase="recased" in whole.flags).split([text])
    segments = [segment for segment in split.segments if not segment.as_is]
    segment = segments[0]
    source = segment.request.source
    search = trace_search(translator, segment)
    target = [target_tokenizer.sos_id, *search.hypothesis.ids, target_tokenizer.eos_id][: model.config.max_length + 1]
    device = next(model.parameters()).device
    with recorded(read := eval_copy(model)) as recording:
        read(torch.tensor([source], device=device), torch.tensor([target[:-1]], device=device))
    alone = {name: (x if name.endswith(".position") else x[0]).float().cpu() for name, x in recording.items()}
    mentioned = {token for prefix in search.log_probabilities for token, _ in search.best(prefix, 8)}
    mentioned |= {token for prefix in search.log_probabilities for token in prefix}
    mentioned |= {*search.hypothesis.ids, search.eos_id}
    mentioned |= {int(i) for name, x in alone.items() if name.endswith(".logits") for i in x.argmax(-1)}
    translation = target_tokenizer.decode(search.hypothesis.ids)
    if not search.hypothesis.is_sure:
        translation = separate_placeholders(segment.text, translation)
    return Trace(
        text=segment.text,
        translation=translation,
        whole_text=text,
        output=whole.text,
        source_ids=source,
        target_ids=target,
        source_pieces=tokenizer.pieces(source),
        decoder_inputs=target_tokenizer.pieces(target[:-1]),
        decoder_targets=target_tokenizer.pieces(target[1:]),
        recording=alone,
        search=search,
        pieces=dict(zip(sorted(mentioned), target_tokenizer.pieces(sorted(mentioned)), strict=True)),
        note=" ".join(_notes(translator, whole, translation, segments)),
    )


def _notes(translator: Translator, whole: Translation, traced: str, segments: Sequence[Segment]) -> Iterator[str]:
    """Yield what a reader must know to compare the trace with the output of `translate`."""
    if "copied" in whole.flags:
        yield "`translate` copies this text, as the training pairs did; here the model translates it."
    elif len(segments) > 1:
        yield (
            f"The text is translated in {len(segments)} parts, sentence by sentence. This is the first; "
            f"`translate` gives “{whole.text}” for the whole text."
        )
    elif "recased" in whole.flags:
        yield (
            "The text is in capitals, as hardly any of the training sources are. It is translated in small letters; "
            f"`translate` gives “{whole.text}”."
        )
    elif whole.text != traced:
        yield f"`translate` gives “{whole.text}” for this text."
    constraints = segments[0].constraints
    if constraints and (required := constraints.required_texts(segments[0].text)):
        texts = ", ".join(" or ".join(f"“{one}”" for one in options) for options in required)
        yield f"The translation must contain {texts}."
    if "repeats" in whole.flags:
        yield "The first search gave a repetitive text, so a second one had its repeated n-grams banned."
    if "wrong_spans" in whole.flags:
        yield "The copied spans of the translation differ from the spans of the text."
    if translator.precision == "int8":
        yield "The search used int8 weights; the tensors are computed in float32."


def attentions(trace: Trace) -> dict[str, Tensor]:
    """Return the weights (H, T, S) of every attention, the encoder's first."""
    return {name: x for name, x in trace.recording.items() if name.endswith("attention") and x.dim() == 3}


def attention_tokens(trace: Trace, part: str) -> tuple[list[str], list[str]]:
    """Return the tokens of an attention's rows and columns. A decoder's rows are the tokens that it predicts."""
    rows = trace.source_pieces if part.startswith("encoder") else trace.decoder_targets
    return rows, trace.decoder_inputs if part.endswith("self_attention") else trace.source_pieces


def attention_label(part: str) -> str:
    """Label an attention: `decoder.layers.0.cross_attention` is the decoder's layer 1."""
    stack, _, number, what = part.split(".")
    return f"{stack} {int(number) + 1}, {what.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class Stage:
    """The residual stream after one sublayer: the mean norm of its vectors, and their mean relative change."""

    part: str
    norm: float
    change: float


def residual_stream(trace: Trace, stack: str) -> list[Stage]:
    """Measure the residual stream of "encoder" or "decoder", from its input to the last sublayer."""
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
    """Return the cross-attention of target tokens to source tokens, (T, S), averaged over the heads of a layer.

    It is the layer that alignments of a translation use.
    """
    crossing = [x for name, x in attentions(trace).items() if name.endswith("cross_attention")]
    return crossing[alignment_layer(len(crossing))].mean(0)
