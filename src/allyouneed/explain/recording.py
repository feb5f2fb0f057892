"""What a model does while it runs, noted down from outside: hooks, gone when the block ends.

The model carries no code for this, computes as ever, and gives the same numbers, bit for bit.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..nn import FeedForward, LearnedPositions, MultiHeadAttention, PositionalEncoding, Residual, Transformer

Recording = dict[str, Tensor]


@contextmanager
def recorded_attention(model: nn.Module) -> Iterator[Recording]:
    """The attention weights of the newest call of each attention of `model` inside the block.

    Yields a dictionary that fills as the model runs: a part's name, such as
    `decoder.layers.0.cross_attention`, → its weights (B, H, T, S). The model runs through its fused
    kernel as ever; equation 1 is worked out beside it, from what went in.
    """
    recording: Recording = {}
    with ExitStack() as hooks:
        for name, part in model.named_modules():
            if isinstance(part, MultiHeadAttention):
                _hook(hooks, part, _note_attention, recording, name)
        yield recording


@contextmanager
def recorded(model: Transformer) -> Iterator[Recording]:
    """Everything Figure 1 has a line for, of the newest `model(source, target)` inside the block.

    Yields a dictionary that fills as the model runs. For every layer i of `encoder` and `decoder`
    (there `self_attention` and `cross_attention` stand for `attention`):

        source.embedding, target.embedding         √d_model times a row of the table     (B, L, D)
        source.position, target.position           what is added to tell places apart    (L, D)
        source.sum, target.sum                     the two together, dropout done        (B, L, D)
        encoder.layers.i.attention                 the weights of equation 1             (B, H, T, S)
        encoder.layers.i.attention.output          what attention adds to the stream     (B, L, D)
        encoder.layers.i.attention_residual        the stream after add & norm           (B, L, D)
        encoder.layers.i.feed_forward.hidden       between the two maps, after the ReLU  (B, L, F)
        encoder.layers.i.feed_forward.output       what the network adds to the stream   (B, L, D)
        encoder.layers.i.feed_forward_residual       the stream after add & norm           (B, L, D)
        decoder.layers.i.logits                    the logit lens: what the model would
                                                   say if this layer were its last       (B, T, V)
        encoder, decoder                           what each stack gives, its norm done  (B, L, D)
        logits                                     what the model says                   (B, T, V)

    `model.step`, one word at a time, keeps parts of a layer for later and is not recorded.
    """
    with recorded_attention(model) as recording, ExitStack() as hooks:
        for side, part in (("source", model.source_position), ("target", model.target_position)):
            _hook(hooks, part, _note_position, recording, side)
        for name, module in model.named_modules():
            if isinstance(module, MultiHeadAttention):
                _hook(hooks, module, _note_output, recording, f"{name}.output")
            elif isinstance(module, FeedForward):
                _hook(hooks, module.inner, partial(_note_hidden, module), recording, f"{name}.hidden")
                _hook(hooks, module, _note_output, recording, f"{name}.output")
            elif isinstance(module, Residual):
                _hook(hooks, module, _note_output, recording, name)
        for i, layer in enumerate(model.decoder.layers):
            _hook(hooks, layer, partial(_note_lens, model), recording, f"decoder.layers.{i}.logits")
        for name, whole in (("encoder", model.encoder), ("decoder", model.decoder), ("logits", model.projection)):
            _hook(hooks, whole, _note_output, recording, name)
        yield recording


def _hook(hooks: ExitStack, part: nn.Module, note: Any, seen: Recording, name: str) -> None:
    hooks.callback(part.register_forward_hook(partial(note, seen, name)).remove)


def _note_attention(seen: Recording, name: str, part: MultiHeadAttention, inputs: tuple[Any, ...], _: Tensor) -> None:
    query, key, _, *may_look = inputs
    with torch.no_grad():
        seen[name] = part.weights(query, key, *may_look)


def _note_position(
    seen: Recording, side: str, part: PositionalEncoding | LearnedPositions, inputs: tuple[Tensor], output: Tensor
) -> None:
    seen[f"{side}.embedding"], seen[f"{side}.sum"] = inputs[0].detach(), output.detach()
    seen[f"{side}.position"] = part.encoding[: output.size(1)].detach()


def _note_output(seen: Recording, name: str, part: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
    seen[name] = output.detach()


def _note_hidden(
    whole: FeedForward, seen: Recording, name: str, part: nn.Module, inputs: tuple[Tensor], output: Tensor
) -> None:
    seen[name] = whole.activation(output.detach())


def _note_lens(
    model: Transformer, seen: Recording, name: str, part: nn.Module, inputs: tuple[Any, ...], output: Tensor
) -> None:
    # The functions behind the modules, not the modules: their own hooks must not hear of this.
    with torch.no_grad():
        seen[name] = model.projection.forward(model.decoder.norm.forward(output))
