"""The search that a `DecodeConfig` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..config import DecodeConfig
from ..lazy import Tensor, torch
from .beam import beam_search
from .beam_options import BeamOptions, Penalty, length_penalty, plain_length_penalty
from .constrained import constrained_beam_search
from .constraint_state import PhraseConstraint, WordBoundaries
from .diverse import diverse_beam_search
from .ended import best_first
from .greedy import find_most_likely, greedy_search
from .rules import Rule, forced_end, forced_prefix, minimum_length, no_repeated_ngram, repetition_penalty, with_rules
from .sample import sample_search, sample_tokens
from .step import AnyState, Hypothesis, SearchLimits, Step
from .stepwise import generate_stepwise

LENGTH_PENALTIES: dict[str, Penalty] = {"gnmt": length_penalty, "plain": plain_length_penalty}


def search(
    step: Step[AnyState],
    state: AnyState,
    config: DecodeConfig,
    limits: SearchLimits,
    *,
    rules: Sequence[Rule] = (),
    constraints: Sequence[Sequence[PhraseConstraint]] = (),
    boundaries: WordBoundaries | None = None,
    generators: Sequence[torch.Generator] = (),
) -> list[list[Hypothesis]]:
    """For each of B sentences at most `config.nbest` hypotheses, the best first; none of a cancelled sentence.

    The caller computes `limits` from the lengths of `config` and of the sources. Sampling needs `generators`, one for
    each sentence. With `constraints`, a list of phrases for each sentence, and the vocabulary's word `boundaries`, it
    is a beam search whose hypotheses contain all of these phrases.
    """
    if rules:
        ruled, start = with_rules(step, state, rules, of=limits.max_lengths)
        return search(
            ruled, start, config, limits, constraints=constraints, boundaries=boundaries, generators=generators
        )
    options = _beam_options(config)
    if any(constraints):
        hypotheses = constrained_beam_search(
            step, state, limits, options, constraints=constraints, boundaries=boundaries or WordBoundaries()
        )
    elif config.sample:
        samples = [
            sample_search(
                step,
                state,
                limits,
                generators=generators,
                temperature=config.temperature,
                top_k=config.top_k,
                top_p=config.top_p,
            )
            for _ in range(config.nbest)
        ]
        hypotheses = [best_first(list(of_one)) for of_one in zip(*samples, strict=True)]
    elif config.beam == 1:
        hypotheses = [[hypothesis] for hypothesis in greedy_search(step, state, limits)]
    elif config.beam_groups > 1:
        hypotheses = diverse_beam_search(
            step, state, limits, options, groups=config.beam_groups, diversity=config.diversity_penalty
        )
    else:
        hypotheses = beam_search(step, state, limits, options)
    return [[] if limits.is_cancelled(b) else of_one for b, of_one in enumerate(hypotheses)]


def _beam_options(config: DecodeConfig) -> BeamOptions:
    return BeamOptions(
        beam=config.beam,
        alpha=config.alpha,
        penalty=LENGTH_PENALTIES[config.length_penalty],
        patience=config.patience,
        nbest=config.nbest,
        wait_for_beam=config.early_stopping == "beam",
    )


def stream_tokens(
    step: Step[AnyState],
    state: AnyState,
    config: DecodeConfig,
    limits: SearchLimits,
    *,
    rules: Sequence[Rule] = (),
    generators: Sequence[torch.Generator],
) -> Iterator[int]:
    """The tokens of one sentence as they are chosen, without the end token: greedy, or sampled if `config` says so."""
    if rules:
        ruled, start = with_rules(step, state, rules, of=limits.max_lengths)
        yield from stream_tokens(ruled, start, config, limits, generators=generators)
        return
    choose = find_most_likely(step)
    if config.sample:
        choose = partial(
            sample_tokens, generators=generators, temperature=config.temperature, top_k=config.top_k, top_p=config.top_p
        )
    for new_tokens in generate_stepwise(step, state, limits, choose=choose):
        yield from (token for token in new_tokens.tokens if token != limits.eos_id)


def length_divisor(config: DecodeConfig, hypothesis: Hypothesis) -> float:
    """What the log-probability of a hypothesis is divided by to make its score."""
    return LENGTH_PENALTIES[config.length_penalty](hypothesis.tokens, alpha=config.alpha)


def build_rules(
    config: DecodeConfig,
    *,
    eos_id: int,
    min_lengths: Tensor,
    max_lengths: Tensor,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[Rule]:
    """The rules that `config` sets; rules that would change nothing are left out.

    `min_lengths` and `max_lengths` (B,) count tokens, the end token included; sentence b begins with `prefixes[b]`.
    """
    rules: list[Rule] = []
    if prefixes and any(prefixes):  # the first: a later rule that bans every token it leaves is ignored
        rules.append(forced_prefix(prefixes))
    if config.repetition_penalty != 1:
        rules.append(repetition_penalty(config.repetition_penalty))
    if config.no_repeat_ngram_size:
        rules.append(no_repeated_ngram(config.no_repeat_ngram_size))
    if config.min_length or config.min_ratio:
        rules.append(minimum_length(min_lengths, eos_id=eos_id))
    if config.forced_eos:
        rules.append(forced_end(max_lengths, eos_id=eos_id))
    return rules
