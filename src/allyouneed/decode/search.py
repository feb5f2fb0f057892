"""The search that a `DecodeConfig` asks for."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from ..config import DecodeConfig
from .beam import beam_search, length_penalty, plain_length_penalty
from .constrained import constrained_beam_search
from .demand import Phrase, Seams
from .diverse import diverse_beam_search
from .greedy import greedy_search, likeliest
from .rules import Rule, forced_prefix, no_early_end, no_repeated_ngram, repetition_penalty, with_rules
from .sample import draw, sample_search
from .step import AnyState, Hypothesis, Step
from .walk import walk

PENALTIES = {"gnmt": length_penalty, "plain": plain_length_penalty}


def search(
    step: Step[AnyState],
    state: AnyState,
    config: DecodeConfig,
    *,
    sos_id: int,
    eos_id: int,
    max_lengths: Tensor,
    rules: Sequence[Rule] = (),
    demands: Sequence[Sequence[Phrase]] = (),
    seams: Seams | None = None,
    generator: torch.Generator | None = None,
) -> list[list[Hypothesis]]:
    """For each of B sentences what `config` wants of it, `nbest` hypotheses at most, the best first.

    `max_lengths` (B,) bounds each one's ids, the end sign included; `config`'s own lengths are left
    to the caller, who knows the sources. Sampling needs a `generator`. With `demands`, one list of
    phrases a sentence, and the vocabulary's `seams`, the search is a beam that says all of them.
    """
    if rules:
        sentences, device = len(max_lengths), max_lengths.device
        ruled, start = with_rules(step, state, rules, sentences=sentences, device=device)
        return search(
            ruled,
            start,
            config,
            sos_id=sos_id,
            eos_id=eos_id,
            max_lengths=max_lengths,
            demands=demands,
            seams=seams,
            generator=generator,
        )
    ends = {"sos_id": sos_id, "eos_id": eos_id}
    if any(demands):
        return constrained_beam_search(
            step,
            state,
            demands=demands,
            seams=seams or Seams(),
            **ends,
            max_lengths=max_lengths,
            beam=config.beam,
            alpha=config.alpha,
            penalty=PENALTIES[config.penalty],
            patience=config.patience,
            nbest=config.nbest,
        )
    if config.sample:
        assert generator is not None
        drawn = [
            sample_search(
                step,
                state,
                **ends,
                max_lengths=max_lengths,
                generator=generator,
                temperature=config.temperature,
                top_k=config.top_k,
                top_p=config.top_p,
            )
            for _ in range(config.nbest)
        ]
        return [list(of_one) for of_one in zip(*drawn, strict=True)]
    if config.beam == 1:
        return [[found] for found in greedy_search(step, state, **ends, max_lengths=max_lengths)]
    if config.groups > 1:
        return diverse_beam_search(
            step,
            state,
            **ends,
            max_lengths=max_lengths,
            beam=config.beam,
            alpha=config.alpha,
            groups=config.groups,
            diversity=config.diversity,
            penalty=PENALTIES[config.penalty],
            patience=config.patience,
            nbest=config.nbest,
        )
    return beam_search(
        step,
        state,
        **ends,
        max_lengths=max_lengths,
        beam=config.beam,
        alpha=config.alpha,
        penalty=PENALTIES[config.penalty],
        patience=config.patience,
        nbest=config.nbest,
    )


def words_of(
    step: Step[AnyState],
    state: AnyState,
    config: DecodeConfig,
    *,
    sos_id: int,
    eos_id: int,
    max_lengths: Tensor,
    generator: torch.Generator,
) -> Iterator[int]:
    """The words of one sentence as they come, the end sign left out: the likeliest, or drawn if `config` samples."""
    choose = likeliest
    if config.sample:
        choose = partial(
            draw, generator=generator, temperature=config.temperature, top_k=config.top_k, top_p=config.top_p
        )
    for said in walk(step, state, choose=choose, sos_id=sos_id, eos_id=eos_id, max_lengths=max_lengths):
        if (word := int(said.words)) != eos_id:
            yield word


def penalty_of(config: DecodeConfig, hypothesis: Hypothesis) -> float:
    """What a hypothesis' log-probability is divided by to make the score."""
    return PENALTIES[config.penalty](len(hypothesis.ids) + hypothesis.finished, alpha=config.alpha)


def rules_of(
    config: DecodeConfig, *, eos_id: int, min_lengths: Tensor, prefixes: Sequence[Sequence[int]] | None = None
) -> list[Rule]:
    """The rules that `config` asks for; none of those that would change nothing.

    `min_lengths` (B,) counts words, the end sign left out; sentence b begins with `prefixes[b]`.
    """
    rules: list[Rule] = []
    if prefixes and any(prefixes):  # the first, so that a later one that forbids all but it is lifted
        rules.append(forced_prefix(prefixes))
    if config.repetition_penalty != 1:
        rules.append(repetition_penalty(config.repetition_penalty))
    if config.no_repeat:
        rules.append(no_repeated_ngram(config.no_repeat))
    if config.min_length or config.min_ratio:
        rules.append(no_early_end(min_lengths, eos_id=eos_id))
    return rules
