"""Steps of searches, to compare an engine with the definition, `Transformer.forward`.

Edits of the files of `nn/`, subclasses, hooks and replaced functions are seen alike: whatever makes `forward` compute
other logits than an engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..decode.beam import Best, top_continuations
from ..decode.greedy import most_likely
from ..decode.likelihood import eval_copy
from ..errors import AllYouNeedError
from ..light.engine import LightEngine
from ..light.search import LightStep
from ..nn.transformer import Transformer

SOURCE_LENGTHS = (66, 3)  # tokens of the sources: with padding, and one longer than a tile of an attention kernel
STEPS, LONG_STEPS, BEAM = 4, 70, 2
PROJECTION_ROWS = 64  # of the projection in a long search
FLOAT_TOLERANCE = 1e-3  # of the standard deviation of the logits: far above rounding, far below an edit
INT8_TOLERANCE = 0.25  # the same in int8, whose rounding is a few percent
NEGLIGIBLE = 1e-5  # nats: logits that are all 0 but for rounding differ by more than their deviation


def describe_change(model: Transformer) -> str:
    """Say that the model itself computes, since it does otherwise than `fast/`; and whether for an edit of `nn/`."""
    ours = (__package__.replace("fast", "nn"), __package__.replace("fast", "younger"), "torch.nn")
    parts = list(model.modules())
    is_ours = all(type(part).__module__.startswith(ours) and "forward" not in vars(part) for part in parts)
    has_hooks = any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    what = "`nn/`" if is_ours and not has_hooks else "the model"
    return f"{what} was changed, so its own code computes, more slowly"


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
    ancestors = torch.empty(sentences, beam, 0, dtype=torch.int64)  # of each hypothesis, at each step
    for last, parents in zip(searched.tokens, searched.parents, strict=True):
        now, state = engine.step(last.flatten(), state)
        state = state.reorder((rows[:, None] * beam + parents).flatten())
        logits.append(now.view(sentences, beam, -1))
        ancestors = _select(torch.cat((ancestors, torch.arange(beam).expand(sentences, beam)[..., None]), 2), parents)
    by_step = zip(logits, ancestors.unbind(2), strict=True)
    return torch.stack([_select(now, chosen) for now, chosen in by_step], 2).flatten(0, 1)


def _select(rows: Tensor, parents: Tensor) -> Tensor:
    """The rows of the parents: (B, beam, …), (B, beam) → (B, beam, …)."""
    return torch.stack([row[parent] for row, parent in zip(rows, parents, strict=True)])


def varied_ids(count: int, vocab_size: int, pad_id: int, rng: torch.Generator) -> Tensor:
    """Ids but `pad_id`, (count,): the lowest and the highest, as special tokens are, then random ones."""
    edges = torch.tensor([*range(vocab_size - 1)[:4], *range(vocab_size - 1)[-4:]], dtype=torch.int64)
    ids = torch.cat((edges, torch.randint(0, max(1, vocab_size - 1), (count,), generator=rng)))[:count]
    return ids + (ids >= pad_id)


def first_steps(model: Transformer) -> ForkedSearch:
    """The first steps of a search with two hypotheses, for a long and a short source, in eval mode."""
    return _search(model, SOURCE_LENGTHS, STEPS)


def many_steps(model: Transformer) -> tuple[Transformer, ForkedSearch]:
    """The steps of a long search with two hypotheses, for one long source, and the model that made them.

    It is `model`, or if it can be a copy with the first layers and rows of the projection alone, whose steps take a
    fraction of the time. Both are in eval mode.
    """
    shallow = eval_copy(model)
    try:
        for stack in (shallow.encoder, shallow.decoder):
            stack.layers = type(stack.layers)(list(stack.layers)[:1])
        parameters = shallow.projection._parameters
        cut = {
            name: whole[:PROJECTION_ROWS] for name in ("table", "bias") if (whole := parameters.get(name)) is not None
        }
        vars(shallow.projection)["_parameters"] = {**parameters, **cut}
        return shallow, _search(shallow, SOURCE_LENGTHS[:1], LONG_STEPS)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):  # a model of another build
        return model, _search(model, SOURCE_LENGTHS[:1], LONG_STEPS)


def _search(model: Transformer, lengths: Sequence[int], steps: int) -> ForkedSearch:
    config, rng, device = model.config, torch.Generator().manual_seed(0), next(model.parameters()).device
    lengths = [min(length, config.max_length) for length in lengths]
    source = torch.full((len(lengths), max(lengths)), config.pad_id)
    for row, length in zip(source, lengths, strict=True):
        row[:length] = varied_ids(length, config.vocab_size, config.pad_id, rng)
    vocabulary = varied_ids(32, config.effective_target_vocab_size, config.effective_target_pad_id, rng).tolist()
    with torch.inference_mode():
        return fork(eval_copy(model), source.to(device), vocabulary, beam=BEAM, steps=steps)


class _FromArrays:
    """A `LightEngine`, or its state, with tensors in place of arrays."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def start(self, source: Tensor) -> "_FromArrays":
        return _FromArrays(self.inner.start(source.numpy()))

    def reorder(self, hypotheses: Tensor) -> "_FromArrays":
        return _FromArrays(self.inner.reorder(hypotheses.numpy()))

    def step(self, last: Tensor, state: "_FromArrays") -> tuple[Tensor, "_FromArrays"]:
        logits, inner = self.inner.step(last.numpy(), state.inner)
        return torch.from_numpy(logits), _FromArrays(inner)

    def top_continuations(self, totals: list[list[float]], log_probabilities: Tensor, count: int) -> Best:
        return LightStep.top_continuations(totals, log_probabilities.numpy(), count)

    def most_likely(self, log_probabilities: Tensor, sentences: Sequence[int]) -> tuple[Any, Any]:
        return LightStep.most_likely(log_probabilities.numpy(), sentences)


@torch.inference_mode()
def compare_light(light: LightEngine, engine: Any, model: Transformer) -> str:
    """How the logits of the model in NumPy differ from those of `engine` beyond rounding; empty if they do not."""
    searched = first_steps(model)
    return compare_engine(_FromArrays(light), replace(searched, logits=step_through(engine, searched)))


@torch.inference_mode()
def compare_engine(engine: Any, searched: ForkedSearch, *, tolerance: float = FLOAT_TOLERANCE) -> str:
    """How the logits of `engine` differ from those of `forward` beyond rounding; empty if they do not."""
    try:
        logits = step_through(engine, searched)
        if not _chooses_alike(engine):
            return "chooses other continuations than decode/beam.py or decode/greedy.py"
    except (AllYouNeedError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return f"cannot compute this model ({type(error).__name__}: {error})"
    finite = searched.logits.isfinite()
    if not torch.equal(logits.isfinite(), finite):
        return "gives logits that are no numbers elsewhere than those of Transformer.forward"
    if not finite.any():
        return ""
    expected, difference = searched.logits[finite].double(), (logits - searched.logits)[finite].double()
    distance = difference.square().mean().sqrt() if tolerance > FLOAT_TOLERANCE else difference.abs().max()
    if distance <= max(NEGLIGIBLE, tolerance * float(expected.std())):
        return ""
    return f"gives other logits than Transformer.forward, by {float(distance / expected.std()):.1%} of their deviation"


def _chooses_alike(engine: Any) -> bool:
    """Whether the engine finds the best continuations that `decode` finds; both sentences have two hypotheses."""
    rng = torch.Generator().manual_seed(0)
    log_probabilities = torch.randn(2 * BEAM, 40, generator=rng).log_softmax(-1)
    totals = (-torch.rand(2, BEAM, generator=rng)).tolist()
    chosen = [
        engine.top_continuations(totals, log_probabilities, 2 * BEAM),
        top_continuations(totals, log_probabilities, 2 * BEAM),
    ]
    likely = [getattr(engine, "most_likely", most_likely)(log_probabilities, [0]), most_likely(log_probabilities, [0])]
    pairs = [*zip(*chosen, strict=True), *zip(*likely, strict=True)]
    return all(torch.allclose(torch.as_tensor(one), torch.as_tensor(other)) for one, other in pairs)
