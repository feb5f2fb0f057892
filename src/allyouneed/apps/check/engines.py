"""Check that all engines, losses and searches agree with their definitions."""

import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor

from ...data.batch import pad
from ...decode import BeamOptions, Continuation, Restriction, SearchLimits, beam_search
from ...fast.loss import fused_linear_cross_entropy
from ...nn import Transformer
from ...train.loss import mean_loss
from ...translator.definition import DefinitionEngine
from ...translator.engine import Engine, make_engine
from ..explain.search_trace import as_tensor
from .model import MAX_LOGIT_DIFFERENCE, CheckError, CheckResult, Ids, named_check, outcome

MAX_INT8_GAIN_ERROR = 0.06  # largest relative error in the size of int8 results
MAX_INT8_DISTANCE = 0.25  # largest distance of int8 results from float32, in standard deviations
BEAM = 3
STEPS = 20  # tokens of each hypothesis
MOST_ROWS = 256  # positions in a matrix of attention weights


class ForkedSearch(NamedTuple):
    """A search whose hypotheses fork at random, recorded as T steps with the results expected at each step.

    `steps` are the arguments of `Step`. `expected` are the log-probabilities of `Transformer.forward`, (N, V) each.
    """

    sources: list[list[int]]
    steps: list[tuple[list[int], list[int]]]
    expected: list[Tensor]


@torch.inference_mode()
def engines_agree(model: Transformer, ids: Ids) -> Iterator[CheckResult]:
    """Check that every engine gives the log-probabilities of a full pass over the sentence, even when beams fork."""
    searches = [fork(model, ids.sources[:count], ids) for count in sorted({1, min(3, len(ids.sources))})]
    definition = DefinitionEngine(model)
    yield outcome("steps", _compare, definition, searches, "the model, step by step,")
    for precision in ("float32", "int8"):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            engine = make_engine([model], precision)
        if warned:  # for example because of a user's own part: then the model itself computes, which has been checked
            yield CheckResult(precision, None, str(warned[-1].message))
        elif isinstance(engine, DefinitionEngine):
            yield CheckResult(precision, None, f"the model itself translates on {model.projection.table.device}")
            return
        else:
            yield outcome(precision, _compare, engine, searches, f"the engine in {precision}")


def fork(model: Transformer, sources: list[list[int]], ids: Ids) -> ForkedSearch:
    """Search with `BEAM` hypotheses per sentence, which write random tokens of `ids` and fork at every step."""
    rng, sentences = Random(1), len(sources)
    vocabulary = sorted({token for target in ids.targets for token in target[1:-1]})
    parents = [b for b in range(sentences) for _ in range(BEAM)]  # the first step has one row per sentence
    memory = pad([sources[b] for b in parents], model.config.pad_id)
    written: list[list[int]] = [[] for _ in range(sentences)]
    steps, expected = [], []
    for length in range(min(STEPS, model.config.max_length)):
        tokens = [rng.choice(vocabulary) if length else ids.sos_id for _ in parents]
        written = [[*written[parent], token] for parent, token in zip(parents, tokens, strict=True)]
        steps.append((parents, tokens))
        expected.append(model(memory, torch.tensor(written))[:, -1].log_softmax(-1))
        parents = [b * BEAM + rng.randrange(BEAM) for b in range(sentences) for _ in range(BEAM)]
    return ForkedSearch(sources, steps, expected)


def _compare(engine: Engine, searches: list[ForkedSearch], name: str) -> str:
    exact = engine.precision == "float32"
    product, size, error = 0.0, 0.0, 0.0
    for searched in searches:
        step = engine.start(searched.sources)
        for length, ((hypotheses, tokens), expected) in enumerate(
            zip(searched.steps, searched.expected, strict=True), start=1
        ):
            step(hypotheses, tokens)
            result = as_tensor(step.log_probabilities())
            change = float((result - expected).abs().max())
            if exact and not change <= MAX_LOGIT_DIFFERENCE:
                raise CheckError(
                    f"log-probabilities of {name} differ by {change:.3g} from one pass over the sentence, from token "
                    f"{length} of a forking beam on: a step or the order of the KV cache is wrong."
                )
            result, expected = (rows - rows.mean(-1, keepdim=True) for rows in (result, expected))
            product, size = product + float((result * expected).sum()), size + float(expected.square().sum())
            error += float((result - expected).square().sum())
    if exact:
        return f"{name} gives the log-probabilities of the whole sentence, in forking beams too"
    gain, distance = product / size, math.sqrt(error / size)
    if not (abs(gain - 1) <= MAX_INT8_GAIN_ERROR and distance <= MAX_INT8_DISTANCE):
        raise CheckError(
            f"logits of {name} are {gain:.3f} times those in float32, and differ from them by {100 * distance:.0f} % "
            "of their standard deviation: more than rounding explains (native/)."
        )
    return f"logits of {name} differ from those in float32 by {100 * distance:.1f} % of their standard deviation"


@named_check("positions")
@torch.inference_mode()
def positions_differ(model: Transformer) -> str:
    """Check that the model can tell all positions apart, and that a decoding step adds the vector of its position.

    All positions get the same random vector. If no positions are added to it, as with rotary positions, self-attention
    must tell them apart: no two of the first `MOST_ROWS` may attend alike.
    """
    length, rng = model.config.max_length, torch.Generator().manual_seed(0)
    same = torch.randn(1, 1, model.config.d_model, generator=rng).expand(1, length, -1)
    for side, position, attention in (
        ("source", model.source_position, next(iter(model.encoder.layers)).attention),
        ("target", model.target_position, next(iter(model.decoder.layers)).self_attention),
    ):
        vectors = position(same)[0]
        last = length - 1
        if (position(same[:, :1], start=last)[0, 0] - vectors[last]).abs().max() > MAX_LOGIT_DIFFERENCE:
            raise CheckError(f"a decoding step adds a wrong position vector to the {side}.")
        if torch.equal(vectors, same[0]):
            rows = same[:, :MOST_ROWS]
            vectors = attention.weights(rows, rows)[0].log().clamp(min=-100).transpose(0, 1).flatten(1)  # (L, H·L)
        equal = (torch.cdist(vectors, vectors) + torch.eye(len(vectors)) < MAX_LOGIT_DIFFERENCE).nonzero()
        if len(equal):
            first, second = equal[0].tolist()
            raise CheckError(f"positions {first} and {second} of the {side} are the same to the model.")
    return "no two positions are alike"


@named_check("loss")
def losses_match_definition(model: Transformer, ids: Ids) -> str:
    """Check that training and validation use cross entropy over all tokens except padding, with its gradients."""
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
                    f"the {what}{name} differs from cross entropy over all tokens except padding "
                    f"({one.norm():.4g}, expected {other.norm():.4g}; train/loss.py)."
                )
    return "the losses of training and validation, and their gradients, equal their definition"


@named_check("penalty")
def beam_search_is_exhaustive() -> str:
    """Check that a beam with room for all sentences of three tokens finds the best by log P / ((5 + |Y|) / 6)^α."""
    alpha, longest, eos_id = 0.6, 3, 2
    for seed in range(5):
        table = torch.randn(longest, 4, 4, generator=torch.Generator().manual_seed(seed)).log_softmax(-1)

        def score(ids: tuple[int, ...], table: Tensor = table) -> float:
            total = sum(
                float(table[t, before, token])
                for t, (before, token) in enumerate(zip((1, *ids[:-1]), ids, strict=True))
            )
            return total / math.pow((5 + len(ids)) / 6, alpha)

        sentences = [(*tokens, eos_id) for n in range(longest) for tokens in product((0, 1, 3), repeat=n)]
        best = max(sentences, key=score)
        ((hypothesis,),) = beam_search(
            _TableStep(table.tolist()),
            SearchLimits(sos_id=1, eos_id=eos_id, max_lengths=[longest]),
            BeamOptions(beam=64, alpha=alpha),
        )
        if (*hypothesis.ids, eos_id) != best or abs(hypothesis.score - score(best)) > MAX_LOGIT_DIFFERENCE:
            raise CheckError(
                f"the best of all sentences is {best} with a score of {score(best):.3f}, but beam search finds "
                f"{hypothesis.ids} with {hypothesis.score:.3f}: the length penalty or the search "
                "is wrong (decode/beam_options.py, decode/beam.py)."
            )
    return "a beam that holds all sentences finds the best, length penalty included"


class _TableStep:
    """A made-up model of one sentence, as a table: log-probabilities by position, last token and next token."""

    def __init__(self, table: list[list[list[float]]]) -> None:
        self._table, self._rows = iter(table), list[list[float]]()

    def __call__(self, hypotheses: Sequence[int], tokens: Sequence[int]) -> None:
        by_last = next(self._table)
        self._rows = [by_last[token] for token in tokens]

    def restrict(self, hypothesis: int, restriction: Restriction) -> None:
        raise NotImplementedError("no search without rules restricts a step")

    def log_probability(self, hypothesis: int, token: int) -> float:
        return self._rows[hypothesis][token]

    def best(self, totals: Sequence[float], count: int) -> list[list[Continuation]]:
        continuations = [
            Continuation(total + gain, n, token)
            for n, (total, row) in enumerate(zip(totals, self._rows, strict=True))
            for token, gain in enumerate(row)
        ]
        return [sorted(continuations, key=lambda one: (-one.total, one.hypothesis, one.token))[:count]]
