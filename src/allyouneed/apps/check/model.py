"""Checks of properties that every correct Transformer has, whatever it has learned, on a few sentences."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ...config import ModelConfig
from ...data.batch import Batch, pad
from ...decode import BeamOptions, SearchLimits, beam_search, greedy_search
from ...nn import FeedForward, MultiHeadAttention, Transformer
from ...translator.definition import DefinitionEngine

Inputs = ParamSpec("Inputs")

MIN_ACTIVE_UNITS = 0.1  # share of a feed-forward network's units; trained models keep many units for rare tokens
MAX_LOGIT_DIFFERENCE = 1e-3  # far above rounding in float32, far below any fault
LONG = 40  # tokens of the longest sentences, which show faults that begin at token 20 or 30


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. `passed` is None if the check could not be made."""

    check: str
    passed: bool | None
    explanation: str


@dataclass(frozen=True, slots=True)
class Ids:
    """Sentences of different lengths to try a model on, as ids with `<sos>` and `<eos>`."""

    sources: list[list[int]]
    targets: list[list[int]]
    sos_id: int
    eos_id: int

    def batch(self, config: ModelConfig) -> Batch:
        """Put all sentences into one batch, padded."""
        return Batch(pad(self.sources, config.pad_id), pad(self.targets, config.effective_target_pad_id))


class CheckError(Exception):
    """A fault of a model or, if `passed` is None, the reason why the check could not be made."""

    def __init__(self, explanation: str, *, passed: bool | None = False) -> None:
        super().__init__(explanation)
        self.passed = passed


def outcome(name: str, check: Callable[..., str], *inputs: Any, **settings: Any) -> CheckResult:
    """Make a result from a function that returns its finding or raises a `CheckError`."""
    try:
        return CheckResult(name, True, check(*inputs, **settings))
    except CheckError as error:
        return CheckResult(name, error.passed, str(error))


def named_check(name: str) -> Callable[[Callable[Inputs, str]], Callable[Inputs, CheckResult]]:
    """Make a decorator that turns a function, as in `outcome`, into the check `name`."""

    def decorate(check: Callable[Inputs, str]) -> Callable[Inputs, CheckResult]:
        return wraps(check)(partial(outcome, name, check))

    return decorate


def random_ids(
    config: ModelConfig,
    *,
    sos_id: int,
    eos_id: int,
    source_special_ids: tuple[int, int] | None = None,
    count: int = 6,
    long: int = LONG,
) -> Ids:
    """Draw `count` pairs of random sentences. The source may have its own ids for `<sos>` and `<eos>`.

    The first two have about `long` tokens, the others at most 12.
    """
    rng = torch.Generator().manual_seed(1)
    ids = range(min(config.vocab_size, config.effective_target_vocab_size))
    source_sos, source_eos = source_special_ids or (sos_id, eos_id)
    special = (config.pad_id, config.effective_target_pad_id, sos_id, eos_id, source_sos, source_eos)
    tokens = [i for i in ids if i not in special]
    room = max(1, config.max_length - 4)
    longest = min(long, room)

    def sentence(index: int, sos: int, eos: int) -> list[int]:
        length = longest - index % longest  # lengths differ, so that there is padding
        if index >= 2:  # two long sentences are enough
            length = min(12, room) - index % min(12, room)
        return [sos, *(tokens[i] for i in torch.randint(len(tokens), (length,), generator=rng).tolist()), eos]

    sources = [sentence(i, source_sos, source_eos) for i in range(count)]
    return Ids(sources, [sentence((i + count // 2) % count, sos_id, eos_id) for i in range(count)], sos_id, eos_id)


@named_check("future")
def no_leak_from_the_future(model: Transformer, ids: Ids) -> str:
    """Check that a token does not affect the logits of earlier positions.

    Also check that it affects the logits of its own and all later positions. This uses a copy of the model that attends
    to all tokens equally, because a very certain model may ignore a token.
    """
    longest = max(range(len(ids.targets)), key=lambda i: len(ids.targets[i]))
    source, target = torch.tensor([ids.sources[longest]]), torch.tensor([ids.targets[longest][:-1]])
    for t, change in _changes(model, source, target):
        if change[:t].max() > MAX_LOGIT_DIFFERENCE:
            prediction = f"the prediction at position {int(change[:t].argmax())} changes with the token at position {t}"
            raise CheckError(f"{prediction}: the decoder sees the future. See causal_mask in nn/mask.py.")
    for t, change in _changes(_with_even_attention(model), source, target):
        if change[t:].min() == 0:
            blind = t + int(change[t:].argmin())
            prediction = f"the prediction at position {blind} does not change with the token at position {t}"
            raise CheckError(f"{prediction}: the decoder does not see its past. See causal_mask in nn/mask.py.")
    return "every prediction depends on all earlier tokens and on no later one"


def _changes(model: Transformer, source: Tensor, target: Tensor) -> Iterator[tuple[int, Tensor]]:
    """For each position t from 1, yield how much another token at t changes the logits of all positions, (T,)."""
    memory = model.encode(source)
    before = model.decode(target, memory)
    for t in range(1, target.size(1)):
        other = target.clone()
        other[0, t] = _another(int(target[0, t]), model.config)
        yield t, (model.decode(other, memory) - before).abs().amax(-1)[0]


def _with_even_attention(model: Transformer) -> Transformer:
    even = deepcopy(model)
    for part in even.modules():
        if isinstance(part, MultiHeadAttention):
            for parameter in part.query.parameters():
                parameter.data.zero_()
    return even


@named_check("padding")
def padding_changes_nothing(model: Transformer, ids: Ids) -> str:
    """Check that a sentence gets the same logits with and without padding after it."""
    pad_ids = model.config.pad_id, model.config.effective_target_pad_id
    short = min(range(len(ids.sources)), key=lambda i: len(ids.sources[i]))
    source, target = torch.tensor([ids.sources[short]]), torch.tensor([ids.targets[short][:-1]])
    alone = model(source, target)
    room = model.config.max_length
    more_source, more_target = (
        torch.nn.functional.pad(x, (0, min(3, room - x.size(1))), value=pad_id)
        for x, pad_id in zip((source, target), pad_ids, strict=True)
    )
    for side, padded in (("source", model(more_source, target)), ("target", model(source, more_target))):
        change = (padded[:, : alone.size(1)] - alone).abs().max().item()
        if change > MAX_LOGIT_DIFFERENCE:
            raise CheckError(
                f"padding after the {side} changes the logits by {change:.3g}: it is attended to. "
                "See padding_mask in nn/mask.py, and pad_id."
            )
    return "padding after source and target changes nothing"


@named_check("batch")
def batch_changes_nothing(model: Transformer, ids: Ids) -> str:
    """Check that a sentence gets the same logits in a batch and by itself."""
    batch = ids.batch(model.config)
    together = model(batch.source, batch.target_in)
    for i in range(len(ids.sources)):
        alone = model(torch.tensor([ids.sources[i]]), torch.tensor([ids.targets[i][:-1]]))
        change = (together[i, : alone.size(1)] - alone[0]).abs().max().item()
        if change > MAX_LOGIT_DIFFERENCE:
            raise CheckError(
                f"sentence {i + 1} of a batch has logits that differ by {change:.3g} from its logits by itself: "
                "the sentences of a batch are mixed."
            )
    return f"{len(ids.sources)} sentences have the same logits in a batch as by themselves"


@named_check("cache")
def cache_matches_full_pass(model: Transformer, ids: Ids) -> str:
    """Check that decoding token by token with the KV cache gives the logits of one pass over the whole sentence."""
    source, target = torch.tensor([ids.sources[0]]), torch.tensor([ids.targets[0][:-1]])
    expected = model(source, target)[0]
    memory, cache = model.encode(source), model.new_cache()
    for t, token in enumerate(target[0]):
        logits = model.decode(token[None, None], memory, cache)
        change = (logits[0, 0] - expected[t]).abs().max().item()
        if change > MAX_LOGIT_DIFFERENCE:
            raise CheckError(
                f"at token {t + 1} decoding with the KV cache differs by {change:.3g} from decoding without: "
                "see KVCache in nn/attention.py, causal_mask in nn/mask.py, and the positions."
            )
    return "decoding with the KV cache gives the logits of the whole sentence"


@named_check("beam")
def beam_of_one_is_greedy(model: Transformer, ids: Ids) -> str:
    """Check that beam search with one hypothesis finds the same sentence as greedy search."""
    engine, banned = DefinitionEngine(model), (model.config.effective_target_pad_id, ids.sos_id)
    longest = [min(20, model.config.max_length)] * len(ids.sources)
    limits = SearchLimits(sos_id=ids.sos_id, eos_id=ids.eos_id, max_lengths=longest)
    greedy = greedy_search(engine.start(ids.sources, banned_ids=banned), limits)
    beam = beam_search(engine.start(ids.sources, banned_ids=banned), limits, BeamOptions(beam=1, alpha=0.0))
    for i, (one, (other,)) in enumerate(zip(greedy, beam, strict=True), start=1):
        if one.ids != other.ids:
            raise CheckError(
                f"for sentence {i} a beam of 1 finds {other.ids}, but greedy search {one.ids}: one of them is wrong."
            )
    return f"a beam of 1 and greedy search find the same {len(greedy)} sentences"


@named_check("alive")
def heads_and_units_are_alive(model: Transformer, ids: Ids) -> str:
    """Check that every head has weights, and that a tenth of the units in each feed-forward network are active."""
    dead = [f"{name}, head {head}" for name, head in _dead_heads(model)]
    inactive = units = 0
    for name, fires in _firing(model, ids).items():
        inactive, units = inactive + int((~fires).sum()), units + len(fires)
        if fires.sum() < MIN_ACTIVE_UNITS * len(fires):
            dead.append(f"{name}, {int((~fires).sum())} of {len(fires)} units")
    if dead:
        raise CheckError(
            f"parts that contribute nothing: {'; '.join(dead)}. The learning rate may have been too high, "
            "or d_ff is larger than the task needs."
        )
    return f"every head has weights; {units - inactive:,} of {units:,} feed-forward units are active"


def _firing(model: Transformer, ids: Ids) -> dict[str, Tensor]:
    """Find, for each feed-forward network, which units are nonzero for at least one token. Shape of each: (F,)."""
    batch = ids.batch(model.config)
    fire: dict[str, Tensor] = {}

    def note(name: str, part: FeedForward, tokens: Tensor) -> RemovableHandle:
        def hook(_: nn.Module, __: Any, output: Tensor) -> None:
            fire[name] = (part.activation(output[tokens]).abs() > 1e-6).any(0)

        return part.inner.register_forward_hook(hook)

    with ExitStack() as hooks:
        for name, part in model.named_modules():
            if isinstance(part, FeedForward):
                is_token = (
                    batch.source != model.config.pad_id
                    if name.startswith("encoder")
                    else batch.target_in != model.config.effective_target_pad_id
                )
                hooks.callback(note(name, part, is_token).remove)
        model.hidden_states(batch.source, batch.target_in)
    return fire


def _dead_heads(model: Transformer) -> list[tuple[str, int]]:
    """Find the heads whose part of the output map, or whose value map, is zero."""
    dead = []
    for name, part in model.named_modules():
        if isinstance(part, MultiHeadAttention):
            shares = part.output.weight.view(part.output.out_features, part.heads, -1).abs().amax((0, 2))
            values = part.value.weight.view(part.heads, -1, part.value.in_features).abs().amax((1, 2))
            dead += [(name, head + 1) for head in range(part.heads) if min(shares[head], values[head]) < 1e-8]
    return dead


def _another(token: int, config: ModelConfig) -> int:
    """Return a different token of the target vocabulary that is not padding."""
    others = (i for i in range(config.effective_target_vocab_size) if i not in (token, config.effective_target_pad_id))
    return next(others)
