"""The search that a `DecodeConfig` asks for."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from ..config import DecodeConfig
from .beam import BeamOptions, Penalty, beam_search, length_penalty, plain_length_penalty
from .constrained import constrained_beam_search
from .constraint_state import PhraseConstraint, WordBoundaries
from .diverse import diverse_beam_search
from .greedy import greedy_search, most_likely
from .rules import Rule, forced_prefix, minimum_length, no_repeated_ngram, repetition_penalty, with_rules
from .sample import sample_search, sample_tokens
from .step import AnyState, Hypothesis, SearchLimits, Step
from .stepwise import generate_stepwise

LENGTH_PENALTIES: dict[str, Penalty] = {"gnmt": length_penalty, "plain": plain_length_penalty}


def search(
    step: Step[AnyState],
    state: AnyState,
    config: DecodeConfig,
    *,
    rules: Sequence[Rule] = (),
    constraints: Sequence[Sequence[PhraseConstraint]] = (),
    boundaries: WordBoundaries | None = None,
    generators: Sequence[torch.Generator] = (),
    **limits: Unpack[SearchLimits],
) -> list[list[Hypothesis]]:
    """For each of B sentences at most `config.nbest` hypotheses, the best first.

    `config`'s own lengths are left to the caller, who knows the sources. Sampling needs `generators`, one a sentence.
    With `constraints`, a list of phrases for each sentence, and the vocabulary's word `boundaries`, it is a beam search
    whose hypotheses contain all of them.
    """
    if rules:
        ruled, start = with_rules(step, state, rules, of=limits["max_lengths"])
        return search(
            ruled, start, config, constraints=constraints, boundaries=boundaries, generators=generators, **limits
        )
    options: BeamOptions = {
        "beam": config.beam,
        "alpha": config.alpha,
        "penalty": LENGTH_PENALTIES[config.length_penalty],
        "patience": config.patience,
        "nbest": config.nbest,
    }
    if any(constraints):
        return constrained_beam_search(
            step, state, constraints=constraints, boundaries=boundaries or WordBoundaries(), **limits, **options
        )
    if config.sample:
        samples = [
            sample_search(
                step,
                state,
                **limits,
                generators=generators,
                temperature=config.temperature,
                top_k=config.top_k,
                top_p=config.top_p,
            )
            for _ in range(config.nbest)
        ]
        return [list(of_one) for of_one in zip(*samples, strict=True)]
    if config.beam == 1:
        return [[hypothesis] for hypothesis in greedy_search(step, state, **limits)]
    if config.beam_groups > 1:
        return diverse_beam_search(
            step,
            state,
            groups=config.beam_groups,
            diversity=config.diversity_penalty,
            **limits,
            **options,
        )
    return beam_search(step, state, **limits, **options)


def stream_tokens(
    step: Step[AnyState],
    state: AnyState,
    config: DecodeConfig,
    *,
    rules: Sequence[Rule] = (),
    generators: Sequence[torch.Generator],
    **limits: Unpack[SearchLimits],
) -> Iterator[int]:
    """The words of one sentence as they come, the end sign left out: the likeliest, or drawn if `config` samples."""
    if rules:
        ruled, start = with_rules(step, state, rules, of=limits["max_lengths"])
        yield from stream_tokens(ruled, start, config, generators=generators, **limits)
        return
    choose = most_likely
    if config.sample:
        choose = partial(
            sample_tokens, generators=generators, temperature=config.temperature, top_k=config.top_k, top_p=config.top_p
        )
    for new_tokens in generate_stepwise(step, state, choose=choose, **limits):
        yield from (word for word in new_tokens.tokens if word != limits["eos_id"])


def length_divisor(config: DecodeConfig, hypothesis: Hypothesis) -> float:
    """What a hypothesis' log-probability is divided by to make the score."""
    return LENGTH_PENALTIES[config.length_penalty](len(hypothesis.ids) + hypothesis.finished, alpha=config.alpha)


def build_rules(
    config: DecodeConfig, *, eos_id: int, min_lengths: Tensor, prefixes: Sequence[Sequence[int]] | None = None
) -> list[Rule]:
    """The rules that `config` asks for; none of those that would change nothing.

    `min_lengths` (B,) counts ids, the end sign included; sentence b begins with `prefixes[b]`.
    """
    rules: list[Rule] = []
    if prefixes and any(prefixes):  # the first, so that a later one that forbids all but it is lifted
        rules.append(forced_prefix(prefixes))
    if config.repetition_penalty != 1:
        rules.append(repetition_penalty(config.repetition_penalty))
    if config.no_repeat_ngram_size:
        rules.append(no_repeated_ngram(config.no_repeat_ngram_size))
    if config.min_length or config.min_ratio:
        rules.append(minimum_length(min_lengths, eos_id=eos_id))
    return rules
