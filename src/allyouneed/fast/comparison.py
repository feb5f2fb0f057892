"""The first steps of a search, to compare an engine with the definition, `Transformer.forward`.

Edits of the files of `nn/`, subclasses, hooks and replaced functions are seen alike: whatever makes `forward` compute
other logits than an engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..decode.eval_copy import eval_copy
from ..errors import AllYouNeedError
from ..nn.transformer import Transformer

SOURCE_LENGTHS = (66, 3)  # tokens of the sources: with padding, and one longer than a tile of an attention kernel
STEPS, BEAM = 4, 2
FLOAT_TOLERANCE = 1e-3  # of the standard deviation of the logits: far above rounding, far below an edit
INT8_TOLERANCE = 0.25  # the same in int8, whose rounding is a few percent


@dataclass(frozen=True, slots=True)
class ForkedSearch:
    """A search whose hypotheses are random: which hypothesis each step continues, with which token, and the logits.

    Shapes, for T steps: source (B, S); tokens and parents, T times (B, beam); logits (B · beam, T, V), of `forward`.
    """

    source: Tensor
    tokens: list[Tensor]
    parents: list[Tensor]
    logits: Tensor


def fork(model: Transformer, source: Tensor, vocabulary: Sequence[int], *, beam: int, steps: int) -> ForkedSearch:
    """A search of `model` for sources (B, S) whose hypotheses are written in random ids of `vocabulary`."""
    rng, sentences, ids = torch.Generator().manual_seed(1), len(source), torch.tensor(vocabulary)
    written = ids[torch.randint(len(ids), (sentences, 1, 1), generator=rng)].repeat(1, beam, 1)
    tokens, parents = [], []
    for _ in range(min(steps, model.config.max_length)):
        tokens.append(written[:, :, -1].to(source.device))
        chosen = torch.randint(beam, (sentences, beam), generator=rng)
        new = ids[torch.randint(len(ids), (sentences, beam, 1), generator=rng)]
        written = torch.cat((_select(written, chosen), new), 2)
        parents.append(chosen.to(source.device))
    whole = written[:, :, :-1].flatten(0, 1).to(source.device)
    return ForkedSearch(source, tokens, parents, model(source.repeat_interleave(beam, 0), whole))


def step_through(engine: Any, searched: ForkedSearch) -> Tensor:
    """The logits of what decodes token by token and reorders its state, as in `ForkedSearch`: (B · beam, T, V)."""
    sentences, beam = searched.tokens[0].shape
    rows = torch.arange(sentences, device=searched.source.device)
    state = engine.start(searched.source).reorder(rows.repeat_interleave(beam))
    logits: list[Tensor] = []
    for last, parents in zip(searched.tokens, searched.parents, strict=True):
        now, state = engine.step(last.flatten(), state)
        state = state.reorder((rows[:, None] * beam + parents).flatten())
        logits = [_select(old, parents) for old in [*logits, now.view(sentences, beam, -1)]]
    return torch.stack(logits, 2).flatten(0, 1)


def _select(rows: Tensor, parents: Tensor) -> Tensor:
    """The rows of the parents: (B, beam, …), (B, beam) → (B, beam, …)."""
    return torch.stack([row[parent] for row, parent in zip(rows, parents, strict=True)])


def first_steps(model: Transformer) -> ForkedSearch:
    """The first steps of a search with two hypotheses, for two sources of random ids, in eval mode."""
    config, rng, device = model.config, torch.Generator().manual_seed(0), next(model.parameters()).device
    lengths = [min(length, config.max_length) for length in SOURCE_LENGTHS]
    source = torch.randint(0, max(1, config.vocab_size - 1), (len(lengths), max(lengths)), generator=rng)
    source += source >= config.pad_id  # no padding inside a sentence
    for row, length in zip(source, lengths, strict=True):
        row[length:] = config.pad_id
    with torch.inference_mode():
        return fork(
            eval_copy(model), source.to(device), range(config.effective_target_vocab_size), beam=BEAM, steps=STEPS
        )


@torch.inference_mode()
def compare_engine(engine: Any, searched: ForkedSearch, *, tolerance: float = FLOAT_TOLERANCE) -> str:
    """How the logits of `engine` differ from those of `forward` beyond rounding; empty if they do not."""
    try:
        logits = step_through(engine, searched)
    except (AllYouNeedError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return f"cannot compute this model ({type(error).__name__}: {error})"
    finite = searched.logits.isfinite()
    if not torch.equal(logits.isfinite(), finite):
        return "gives logits that are no numbers elsewhere than those of Transformer.forward"
    if not finite.any():
        return ""
    expected, difference = searched.logits[finite].double(), (logits - searched.logits)[finite].double()
    distance = difference.square().mean().sqrt() if tolerance > FLOAT_TOLERANCE else difference.abs().max()
    if distance <= tolerance * expected.std():
        return ""
    return f"gives other logits than Transformer.forward, by {float(distance / expected.std()):.1%} of their deviation"
