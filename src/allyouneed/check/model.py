"""Properties of the function a model is, whatever it has learned: each is tried on a few sentences."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ..config import ModelConfig
from ..data.batch import pad
from ..decode import beam_search, greedy_search, make_step
from ..inference import AnyEngine, make_engine
from ..nn import FeedForward, MultiHeadAttention, Transformer
from .result import CheckResult, Ids

ALIVE_AT_LEAST = 0.1  # of a network's units; trained models leave many for rare words
TOLERANCE = 1e-3  # of logits: far above rounding in float32, far below any fault


def no_leak_from_the_future(model: Transformer, ids: Ids) -> CheckResult:
    """Another word at place t changes no logits before t, and all from t on."""
    batch = ids.batch(model.config.pad_id)
    longest = max(range(len(ids.targets)), key=lambda i: len(ids.targets[i]))
    source, target = batch.source[longest : longest + 1], torch.tensor([ids.targets[longest][:-1]])
    before = model(source, target)
    memory = model.encode(source)
    for t in range(1, target.size(1)):
        other = target.clone()
        other[0, t] = _another(int(target[0, t]), model.config)
        change = (model.decode(other, memory) - before).abs().amax(-1)[0]
        if change[:t].max() > TOLERANCE:
            return _wrong_mask(f"at place {int(change[:t].argmax())} changed when the word", t, "sees the future")
        if change[t:].min() == 0:
            blind = t + int(change[t:].argmin())
            return _wrong_mask(f"at place {blind} does not change with the word", t, "does not see its past")
    return CheckResult("future", True, "every prediction depends on all words before it and on none after")


def _wrong_mask(prediction: str, place: int, fault: str) -> CheckResult:
    words = f"the prediction {prediction} at place {place}: the decoder {fault}. "
    return CheckResult("future", False, words + "Look at the mask over the past (nn/mask.py, causal_mask).")


def padding_changes_nothing(model: Transformer, ids: Ids) -> CheckResult:
    """A sentence gets the same logits with padding behind it as without."""
    pad_id = model.config.pad_id
    short = min(range(len(ids.sources)), key=lambda i: len(ids.sources[i]))
    source, target = torch.tensor([ids.sources[short]]), torch.tensor([ids.targets[short][:-1]])
    alone = model(source, target)
    room = model.config.max_length
    more_source, more_target = (
        torch.nn.functional.pad(x, (0, min(3, room - x.size(1))), value=pad_id) for x in (source, target)
    )
    for side, padded in (("source", model(more_source, target)), ("target", model(source, more_target))):
        change = (padded[:, : alone.size(1)] - alone).abs().max().item()
        if change > TOLERANCE:
            return CheckResult(
                "padding", False,
                f"padding behind the {side} changes the logits by {change:.3g}: somebody looks at it. "
                "Look at the mask over words (nn/mask.py, padding_mask) and at pad_id.",
            )  # fmt: skip
    return CheckResult("padding", True, "padding behind either sentence changes nothing")


def neighbours_change_nothing(model: Transformer, ids: Ids) -> CheckResult:
    """A sentence gets the same logits in a batch as alone."""
    batch = ids.batch(model.config.pad_id)
    together = model(batch.source, batch.target_in)
    for i in range(len(ids.sources)):
        alone = model(torch.tensor([ids.sources[i]]), torch.tensor([ids.targets[i][:-1]]))
        change = (together[i, : alone.size(1)] - alone[0]).abs().max().item()
        if change > TOLERANCE:
            return CheckResult(
                "batch", False,
                f"sentence {i + 1} of a batch has logits that differ by {change:.3g} from those it has alone: "
                "sentences of a batch are mixed somewhere.",
            )  # fmt: skip
    return CheckResult("batch", True, f"{len(ids.sources)} sentences together get what each gets alone")


def cached_is_uncached(model: Transformer, ids: Ids) -> CheckResult:
    """Word by word, with what is kept of the past, gives the logits of the whole sentence at once."""
    source, target = torch.tensor([ids.sources[0]]), torch.tensor([ids.targets[0][:-1]])
    whole = model(source, target)[0]
    return (
        _differs(model, source, target, whole)
        or _differs(make_engine(model), source, target, whole)
        or CheckResult(
            "cache",
            True,
            "decoding word by word, by the plain step and the fast one, gives the logits of the whole at once",
        )
    )


def _differs(writer: Transformer | AnyEngine, source: Tensor, target: Tensor, whole: Tensor) -> CheckResult | None:
    state: Any = writer.start(source)
    for t, word in enumerate(target[0]):
        logits, state = writer.step(word[None], state)
        change = (logits[0] - whole[t]).abs().max().item()
        if change > TOLERANCE:
            return CheckResult(
                "cache", False,
                f"at word {t + 1} decoding with the kept past differs by {change:.3g} from decoding anew: "
                "step and forward of the decoder disagree (nn/decoder.py, inference/eager.py), or a position is off.",
            )  # fmt: skip
    return None


def beam_of_one_is_greedy(model: Transformer, ids: Ids) -> CheckResult:
    """Beam search with one hypothesis finds what greedy search finds."""
    source = pad(ids.sources, model.config.pad_id)
    step = make_step(model, banned_ids=(model.config.pad_id, ids.sos_id))
    longest = torch.full((len(source),), min(20, model.config.max_length))
    sos_id, eos_id = ids.sos_id, ids.eos_id
    greedy = greedy_search(step, model.start(source), sos_id=sos_id, eos_id=eos_id, max_lengths=longest)
    beam = beam_search(step, model.start(source), sos_id=sos_id, eos_id=eos_id, max_lengths=longest, beam=1, alpha=0.0)
    for i, (one, (other,)) in enumerate(zip(greedy, beam, strict=True), start=1):
        if one.ids != other.ids:
            return CheckResult(
                "beam", False,
                f"for sentence {i} a beam of 1 finds {other.ids}, greedy search {one.ids}: a search errs."
            )  # fmt: skip
    return CheckResult("beam", True, f"a beam of 1 and greedy search find the same {len(greedy)} sentences")


def heads_and_units_are_alive(model: Transformer, ids: Ids) -> CheckResult:
    """Every head adds something to the stream, and a tenth of each feed-forward network fires for some word."""
    dead = [f"{name}, head {head}" for name, head in _dead_heads(model)]
    silent = units = 0
    for name, fires in _firing(model, ids).items():
        silent, units = silent + int((~fires).sum()), units + len(fires)
        if fires.sum() < ALIVE_AT_LEAST * len(fires):
            dead.append(f"{name}, {int((~fires).sum())} of {len(fires)} units")
    if dead:
        return CheckResult(
            "alive", False,
            f"dead, so that their weights do nothing: {'; '.join(dead)}. Rates that are too high kill; "
            "units that were never needed show a d_ff larger than the task.",
        )  # fmt: skip
    return CheckResult("alive", True, f"every head does something; {units - silent:,} of {units:,} units fire")


def _firing(model: Transformer, ids: Ids) -> dict[str, Tensor]:
    """For each feed-forward network, which of its units are not zero for some word, (F,)."""
    batch = ids.batch(model.config.pad_id)
    fire: dict[str, Tensor] = {}

    def note(name: str, part: FeedForward, words: Tensor) -> RemovableHandle:
        def hook(_: nn.Module, __: Any, output: Tensor) -> None:
            fire[name] = (part.activation(output[words]).abs() > 1e-6).any(0)

        return part.inner.register_forward_hook(hook)

    with ExitStack() as hooks:
        for name, part in model.named_modules():
            if isinstance(part, FeedForward):
                read = batch.source if name.startswith("encoder") else batch.target_in
                hooks.callback(note(name, part, read != model.config.pad_id).remove)
        model.hidden_states(batch.source, batch.target_in)
    return fire


def _dead_heads(model: Transformer) -> list[tuple[str, int]]:
    """Heads whose share of the output map, or whose values, are zero."""
    dead = []
    for name, part in model.named_modules():
        if isinstance(part, MultiHeadAttention):
            shares = part.output.weight.view(part.output.out_features, part.heads, -1).abs().amax((0, 2))
            values = part.value.weight.view(part.heads, -1, part.value.in_features).abs().amax((1, 2))
            dead += [(name, head + 1) for head in range(part.heads) if min(shares[head], values[head]) < 1e-8]
    return dead


def _another(word: int, config: ModelConfig) -> int:
    """Some other word of the target's vocabulary, no padding."""
    others = (i for i in range(config.effective_target_vocab_size) if i not in (word, config.pad_id))
    return next(others)
