"""Do the ways that translations and losses are computed in agree with their definitions?"""

import importlib.util
import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..decode import beam_search
from ..inference import make_engine
from ..inference.custom_parts import find_custom_part
from ..inference.quantization import Int8Linear, supports_int8
from ..nn import Transformer
from ..train.loss import fused_linear_cross_entropy, mean_loss
from .result import CheckResult, Ids

CLOSE = 1e-3  # of logits, as for the other checks
GAIN = 0.03  # int8: how far all results together may be from their size in float32
NEAR = 0.25  # int8: how far logits may be from those in float32, of their spread
STEPS = 20  # of a beam that forks


@torch.inference_mode()
def every_engine_is_the_model(model: Transformer, ids: Ids) -> Iterator[CheckResult]:
    """The plain step and every engine there is, through beams that fork, give the logits of the whole at once."""
    yield _forks(model, model, ids, "plain", exact=True)
    yield _forks(model, make_engine(model), ids, "fast", exact=True)
    if find_custom_part(model) or next(model.parameters()).device.type != "cpu":
        return
    compiled = importlib.util.find_spec("numba") is not None
    if compiled:
        yield _forks(model, make_engine(model, compiled=True), ids, "compiled", exact=True)
    if supports_int8(next(model.parameters()).device):
        yield int8_maps_are_near(model)
        yield _forks(model, make_engine(model, precision="int8"), ids, "int8", exact=False)
        if compiled:
            fast = make_engine(model, precision="int8", compiled=True)
            yield _forks(model, fast, ids, "int8 compiled", exact=False)


def _forks(model: Transformer, engine: Any, ids: Ids, name: str, *, exact: bool) -> CheckResult:
    """One sentence, and then three at once, with three hypotheses each, among which every step chooses anew."""
    rng = torch.Generator().manual_seed(1)
    words = torch.tensor(sorted({word for target in ids.targets for word in target[1:-1]}))
    width, gained, size, apart = 3, 0.0, 0.0, 0.0
    for count in (1, min(3, len(ids.sources))):
        source = ids.batch(model.config.pad_id).source[:count]
        written = torch.full((count, width, 1), ids.sos_id)
        state = engine.start(source).reorder(torch.arange(count).repeat_interleave(width))
        seen: list[Tensor] = []
        for _ in range(min(STEPS, model.config.max_length)):
            logits, state = engine.step(written[:, :, -1].flatten(), state)
            seen.append(logits.view(count, width, -1))
            parents = torch.randint(width, (count, width), generator=rng)
            state = state.reorder((torch.arange(count)[:, None] * width + parents).flatten())
            written = torch.stack([row[parent] for row, parent in zip(written, parents, strict=True)])
            seen = [torch.stack([row[parent] for row, parent in zip(old, parents, strict=True)]) for old in seen]
            new = words[torch.randint(len(words), (count, width, 1), generator=rng)]
            written = torch.cat((written, new), 2)
        found = torch.stack(seen, 2).flatten(0, 1)
        expected = model(source.repeat_interleave(width, 0), written[:, :, :-1].flatten(0, 1))
        change = (found - expected).abs().amax(-1)
        if exact and not change.max() <= CLOSE:
            place = int((change > CLOSE).any(0).int().argmax())
            return CheckResult(
                name, False,
                f"at word {place + 1} of a beam that forks, {name} decoding differs by {change.max():.3g} from the "
                "whole sentence at once: a step, or the reordering of the kept past, errs "
                "(nn/decoder.py, inference/kv_cache.py).",
            )  # fmt: skip
        found, expected = found - found.mean(-1, keepdim=True), expected - expected.mean(-1, keepdim=True)
        gained, size = gained + float((found * expected).sum()), size + float(expected.square().sum())
        apart += float((found - expected).square().sum())
    if not exact and not (abs(gained / size - 1) <= 2 * GAIN and math.sqrt(apart / size) <= NEAR):
        return CheckResult(
            name, False,
            f"{name} logits are {gained / size:.3f} times those in float32, and {100 * math.sqrt(apart / size):.0f} % "
            "of their spread away: rounding alone moves them less (inference/quantization.py, inference/compiled.py).",
        )  # fmt: skip
    how = "gives the logits of the whole at once" if exact else f"is {100 * math.sqrt(apart / size):.1f} % away"
    return CheckResult(name, True, f"{name} decoding {how}, for hypotheses that fork too")


def int8_maps_are_near(model: Transformer) -> CheckResult:
    """Every map in int8 gives what it gives in float32, but for rounding."""
    rng = torch.Generator().manual_seed(1)
    maps = {name: (part.weight, part.bias) for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    for name, (weight, bias) in [*maps.items(), ("projection", (model.projection.table, None))]:
        x = torch.randn(8, weight.size(1), generator=rng)
        expected, found = F.linear(x, weight, bias), Int8Linear(weight, bias)(x)
        size = expected.square().sum()
        gain, apart = (found * expected).sum() / size, (found - expected).square().sum() / size
        if size > 0 and not (abs(gain - 1) <= GAIN and apart.sqrt() <= NEAR):
            words = (
                f"{name} in int8 gives {gain:.3f} times what it gives in float32: "
                "scales are off (inference/quantization.py)."
            )
            return CheckResult("int8 maps", False, words)
    return CheckResult("int8 maps", True, f"{len(maps) + 1} maps in int8 are near those in float32")


@torch.inference_mode()
def positions_differ(model: Transformer) -> CheckResult:
    """No two places up to `max_length` have the same position vector, and a step adds that of its place."""
    for side, position in (("source", model.source_position), ("target", model.target_position)):
        nothing = torch.zeros(1, model.config.max_length, model.config.d_model)
        places = position(nothing)[0]
        alike = (torch.cdist(places, places) + torch.eye(len(places)) < CLOSE).nonzero()
        if len(alike):
            first, second = alike[0].tolist()
            return CheckResult(
                "positions", False,
                f"places {first} and {second} of the {side} have the same position vector (nn/position.py).",
            )  # fmt: skip
        last = len(places) - 1
        if (position(nothing[:, :1], start=last)[0, 0] - places[last]).abs().max() > CLOSE:
            return CheckResult("positions", False, f"a step of the {side} is given another position than its own.")
    return CheckResult("positions", True, f"all {model.config.max_length} places have position vectors of their own")


def losses_are_the_definition(model: Transformer, ids: Ids) -> CheckResult:
    """The loss that training uses, its gradient, and that of validation are cross entropy over words alone."""
    batch, pad_id, smoothing = ids.batch(model.config.pad_id), model.config.pad_id, 0.1
    right = batch.target_out
    with torch.no_grad():
        vectors = model.hidden_states(batch.source, batch.target_in)
    table = model.projection.table.detach()

    def gradients(loss: Tensor, of: list[Tensor]) -> list[Tensor]:
        return [loss.detach(), *torch.autograd.grad(loss, of)]

    def leaves() -> list[Tensor]:
        return [vectors.clone().requires_grad_(), table.clone().requires_grad_()]

    mine = leaves()
    log_p = (mine[0] @ mine[1].T).log_softmax(-1)
    surprise = -(1 - smoothing) * log_p.gather(-1, right[..., None])[..., 0] - smoothing * log_p.mean(-1)
    expected = gradients(surprise[right != pad_id].mean(), mine)
    fused, plain = leaves(), leaves()
    fused_loss = fused_linear_cross_entropy(fused[0], fused[1], right, smoothing=smoothing, pad_id=pad_id)
    ways = {
        "fused_linear_cross_entropy": gradients(fused_loss, fused),
        "mean_loss": gradients(mean_loss(plain[0] @ plain[1].T, right, smoothing=smoothing, pad_id=pad_id), plain),
    }
    for name, found in ways.items():
        for what, one, other in zip(
            ("", "gradient for vectors of ", "gradient for the table of "), found, expected, strict=True
        ):
            if not (one - other).norm() <= CLOSE * other.norm():
                return CheckResult(
                    "loss", False,
                    f"the {what}{name} is not that of cross entropy over words alone, padding left out "
                    f"({one.norm():.4g}, not {other.norm():.4g}; train/loss.py).",
                )  # fmt: skip
    return CheckResult("loss", True, "the losses of training and validation, and their gradients, are the definition's")


def the_best_of_all_is_found() -> CheckResult:
    """A beam as wide as all sentences of three words finds the best by log P / ((5 + |Y|) / 6)^α, worked out anew."""
    alpha, longest, eos_id = 0.6, 3, 2
    for seed in range(5):
        table = torch.randn(longest, 4, 4, generator=torch.Generator().manual_seed(seed)).log_softmax(-1)

        def step(last: Tensor, state: _Count, table: Tensor = table) -> tuple[Tensor, _Count]:
            return table[state.length, last], _Count(state.length + 1)

        def score(ids: tuple[int, ...], table: Tensor = table) -> float:
            total = sum(
                float(table[t, before, word]) for t, (before, word) in enumerate(zip((1, *ids[:-1]), ids, strict=True))
            )
            return total / math.pow((5 + len(ids)) / 6, alpha)

        every = [(*some, eos_id) for n in range(longest) for some in product((0, 1, 3), repeat=n)]
        best = max(every, key=score)
        ((found,),) = beam_search(
            step, _Count(0), sos_id=1, eos_id=eos_id, max_lengths=torch.tensor([longest]), beam=64, alpha=alpha
        )
        if (*found.ids, eos_id) != best or abs(found.score - score(best)) > CLOSE:
            return CheckResult(
                "penalty", False,
                f"of all sentences {best} is the best, with a score of {score(best):.3f}; a beam finds {found.ids} "
                f"with {found.score:.3f}: the length penalty or the search errs (decode/beam.py).",
            )  # fmt: skip
    return CheckResult(
        "penalty", True, "a beam that is wide enough finds the best of all sentences, long ones made up for"
    )


class _Count:
    """The state of a model that is a table: how many words there are."""

    def __init__(self, length: int) -> None:
        self.length = length

    def reorder(self, hypotheses: Tensor) -> "_Count":
        return self

    def keep(self, sentences: Tensor) -> "_Count":
        return self
