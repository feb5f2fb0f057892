"""Do all engines, losses and searches agree with their definitions?"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...decode import BeamOptions, SearchLimits, beam_search
from ...fast.comparison import ForkedSearch, fork, step_through
from ...fast.loss import fused_linear_cross_entropy
from ...fast.quantization import Int8Linear, supports_int8
from ...fast.selection import choose_engine
from ...interpreter import is_installed
from ...nn import Transformer
from ...train.loss import mean_loss
from ...younger.rotary import NoPositions, rotate
from .model import MAX_LOGIT_DIFFERENCE, CheckError, CheckResult, Ids, named_check, outcome

MAX_INT8_GAIN_ERROR = 0.03  # how far int8 results may be from float32 in size, as a share
MAX_INT8_DISTANCE = 0.25  # how far int8 results may be from float32, in shares of their standard deviation
BEAM = 3
STEPS = 20  # tokens of each hypothesis
_WRONG_STEP = "a step or the reordering of the KV cache is wrong (nn/decoder.py, fast/kv_cache.py)"


@torch.inference_mode()
def engines_agree(model: Transformer, ids: Ids) -> Iterator[CheckResult]:
    """Every engine, through beams that fork, gives the logits of one pass over the whole sentence."""
    vocabulary = sorted({token for target in ids.targets for token in target[1:-1]})
    source = ids.batch(model.config).source
    searches = [
        fork(model, source[:sentences], vocabulary, beam=BEAM, steps=STEPS)
        for sentences in sorted({1, min(3, len(source))})
    ]
    yield outcome("plain", _compare, model, searches, "plain", exact=True)
    ways: list[tuple[str, dict[str, Any]]] = [("fast", {})]
    device = next(model.parameters()).device
    if device.type == "cpu" and is_installed("numba"):
        ways += [("compiled", {"compiled": True})]
    if supports_int8(device):
        ways += [("int8", {"precision": "int8"})]
        ways += [("int8 compiled", {"precision": "int8", "compiled": True})] if is_installed("numba") else []
    for name, settings in ways:
        engine, reason = choose_engine(model, **settings)
        exact = "precision" not in settings
        if reason and exact:  # such as a part of one's own: what computes is the model itself, which has been tried
            yield CheckResult(name, None, reason)
            return
        if name == "int8":
            yield int8_linears_are_close(model)
        compare = partial(_compare, engine, searches, name, exact=exact)
        yield CheckResult(name, False, reason) if reason else outcome(name, compare)


def _compare(engine: Any, searches: list[ForkedSearch], name: str, *, exact: bool) -> str:
    product, size, error = 0.0, 0.0, 0.0
    for searched in searches:
        try:
            logits, expected = step_through(engine, searched), searched.logits
        except (IndexError, RuntimeError) as fault:
            raise CheckError(f"{name} decoding of a forking beam fails, {_WRONG_STEP}: {fault}") from fault
        change = (logits - expected).abs().amax(-1)
        if exact and not change.max() <= MAX_LOGIT_DIFFERENCE:
            first = int((change > MAX_LOGIT_DIFFERENCE).any(0).int().argmax()) + 1
            raise CheckError(
                f"logits of {name} decoding differ by {change.max():.3g} from those of the whole sentence, from token "
                f"{first} of a forking beam on: {_WRONG_STEP}."
            )
        logits, expected = logits - logits.mean(-1, keepdim=True), expected - expected.mean(-1, keepdim=True)
        product, size = product + float((logits * expected).sum()), size + float(expected.square().sum())
        error += float((logits - expected).square().sum())
    if exact:
        return f"{name} decoding gives the logits of the whole sentence, in forking beams too"
    gain, distance = product / size, math.sqrt(error / size)
    if not (abs(gain - 1) <= 2 * MAX_INT8_GAIN_ERROR and distance <= MAX_INT8_DISTANCE):
        raise CheckError(
            f"{name} logits are {gain:.3f} times those in float32, and differ from them by {100 * distance:.0f} % of "
            "their standard deviation: more than rounding explains (fast/quantization.py, fast/compiled.py)."
        )
    return f"{name} logits differ from those in float32 by {100 * distance:.1f} % of their standard deviation"


@named_check("int8 maps")
def int8_linears_are_close(model: Transformer) -> str:
    """Every linear map in int8 gives the float32 result, but for rounding."""
    rng = torch.Generator().manual_seed(1)
    maps = {name: (part.weight, part.bias) for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    for name, (weight, bias) in [*maps.items(), ("projection", (model.projection.table, model.projection.bias))]:
        x = torch.randn(8, weight.size(1), generator=rng)
        expected, rounded = F.linear(x, weight, bias), Int8Linear(weight, bias)(x)
        size = expected.square().sum()
        gain, error = (rounded * expected).sum() / size, (rounded - expected).square().sum() / size
        if size > 0 and not (abs(gain - 1) <= MAX_INT8_GAIN_ERROR and error.sqrt() <= MAX_INT8_DISTANCE):
            raise CheckError(
                f"{name} in int8 gives {gain:.3f} times its float32 result: its scales are wrong "
                "(fast/quantization.py)."
            )
    return f"{len(maps) + 1} linear maps in int8 are close to those in float32"


@named_check("positions")
@torch.inference_mode()
def positions_differ(model: Transformer) -> str:
    """No two positions up to `max_length` have the same vector, and a decoding step adds the vector of its position.

    Rotary positions have no vectors; there it is a vector of ones, rotated.
    """
    for side, position in (("source", model.source_position), ("target", model.target_position)):
        is_rotary = isinstance(position, NoPositions)
        apply: Callable[..., Tensor] = rotate if is_rotary else position
        x = torch.full((1, model.config.max_length, model.config.d_model), float(is_rotary))
        vectors = apply(x)[0]
        equal = (torch.cdist(vectors, vectors) + torch.eye(len(vectors)) < MAX_LOGIT_DIFFERENCE).nonzero()
        if len(equal):
            first, second = equal[0].tolist()
            raise CheckError(f"positions {first} and {second} of the {side} have the same vector (nn/position.py).")
        last = len(vectors) - 1
        if (apply(x[:, :1], start=last)[0, 0] - vectors[last]).abs().max() > MAX_LOGIT_DIFFERENCE:
            raise CheckError(f"a decoding step adds a wrong position vector to the {side}.")
    return f"all {model.config.max_length} positions have different vectors"


@named_check("loss")
def losses_match_definition(model: Transformer, ids: Ids) -> str:
    """The losses of training and validation, and their gradients, are cross entropy over all tokens but padding."""
    batch, pad_id, smoothing = ids.batch(model.config), model.config.effective_target_pad_id, 0.1
    labels = batch.target_out
    with torch.no_grad():
        hidden_states = model.hidden_states(batch.source, batch.target_in)
    table = model.projection.table.detach()

    def with_gradients(loss: Tensor, inputs: list[Tensor]) -> list[Tensor]:
        return [loss.detach(), *torch.autograd.grad(loss, inputs)]

    def leaves() -> list[Tensor]:
        return [hidden_states.clone().requires_grad_(), table.clone().requires_grad_()]

    plain_inputs = leaves()
    log_p = (plain_inputs[0] @ plain_inputs[1].T).log_softmax(-1)
    loss = -(1 - smoothing) * log_p.gather(-1, labels[..., None])[..., 0] - smoothing * log_p.mean(-1)
    expected = with_gradients(loss[labels != pad_id].mean(), plain_inputs)
    fused, plain = leaves(), leaves()
    fused_loss = fused_linear_cross_entropy(fused[0], fused[1], labels, smoothing=smoothing, pad_id=pad_id)
    ways = {
        "fused_linear_cross_entropy": with_gradients(fused_loss, fused),
        "mean_loss": with_gradients(
            mean_loss(plain[0] @ plain[1].T, labels, smoothing=smoothing, pad_id=pad_id), plain
        ),
    }
    for name, results in ways.items():
        for what, one, other in zip(
            ("", "gradient by the hidden states of ", "gradient by the table of "), results, expected, strict=True
        ):
            if not (one - other).norm() <= MAX_LOGIT_DIFFERENCE * other.norm():
                raise CheckError(
                    f"the {what}{name} is not that of cross entropy over all tokens but padding "
                    f"({one.norm():.4g}, expected {other.norm():.4g}; train/loss.py)."
                )
    return "the losses of training and validation, and their gradients, equal their definition"


@named_check("penalty")
def beam_search_is_exhaustive() -> str:
    """A beam that holds all sentences of three tokens finds the best by log P / ((5 + |Y|) / 6)^α."""
    alpha, longest, eos_id = 0.6, 3, 2
    for seed in range(5):
        table = torch.randn(longest, 4, 4, generator=torch.Generator().manual_seed(seed)).log_softmax(-1)

        def step(last: Tensor, state: _Count, table: Tensor = table) -> tuple[Tensor, _Count]:
            return table[state.length, last], _Count(state.length + 1)

        def score(ids: tuple[int, ...], table: Tensor = table) -> float:
            total = sum(
                float(table[t, before, token])
                for t, (before, token) in enumerate(zip((1, *ids[:-1]), ids, strict=True))
            )
            return total / math.pow((5 + len(ids)) / 6, alpha)

        sentences = [(*tokens, eos_id) for n in range(longest) for tokens in product((0, 1, 3), repeat=n)]
        best = max(sentences, key=score)
        ((hypothesis,),) = beam_search(
            step,
            _Count(0),
            SearchLimits(sos_id=1, eos_id=eos_id, max_lengths=torch.tensor([longest])),
            BeamOptions(beam=64, alpha=alpha),
        )
        if (*hypothesis.ids, eos_id) != best or abs(hypothesis.score - score(best)) > MAX_LOGIT_DIFFERENCE:
            raise CheckError(
                f"the best of all sentences is {best} with a score of {score(best):.3f}, but beam search finds "
                f"{hypothesis.ids} with {hypothesis.score:.3f}: the length penalty or the search "
                "is wrong (decode/beam_options.py, decode/beam.py)."
            )
    return "a beam that holds all sentences finds the best, length penalty included"


class _Count:
    """The state of a model that is a table: the number of tokens so far."""

    def __init__(self, length: int) -> None:
        self.length = length

    def reorder(self, hypotheses: Tensor) -> "_Count":
        return self

    def keep(self, sentences: Tensor) -> "_Count":
        return self
