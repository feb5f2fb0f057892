"""The search that a `DecodeConfig` asks for: greedy, beam or sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from ..config import DecodeConfig
from .beam import beam_search
from .beam_options import BeamOptions, Penalty, length_penalty, plain_length_penalty
from .greedy import greedy_search, write_tokens
from .rules import EndedStep, Rule, RuledStep, forced_prefix, minimum_length, no_repeated_ngram, repetition_penalty
from .sample import SampledStep
from .step import Hypothesis, SearchLimits, Step

LENGTH_PENALTIES: dict[str, Penalty] = {"gnmt": length_penalty, "plain": plain_length_penalty}


def search(
    step: Step,
    config: DecodeConfig,
    limits: SearchLimits,
    *,
    rules: Sequence[Rule] = (),
    generators: Sequence[Random] = (),
) -> list[list[Hypothesis]]:
    """Find at most `config.nbest` hypotheses for each of B sentences, best first. A cancelled sentence gets none.

    The caller derives `limits` from `config` and the source lengths. Sampling needs `generators`, one for each
    sentence, and returns one hypothesis per sentence. To draw several samples, list the sentence several times.
    """
    step = _prepared(step, config, limits, rules, generators)
    if config.beam == 1 or config.sample:
        hypotheses = [[hypothesis] for hypothesis in greedy_search(step, limits)]
    else:
        hypotheses = beam_search(step, limits, beam_options(config))
    return [[] if limits.is_cancelled(b) else found for b, found in enumerate(hypotheses)]


def stream_tokens(
    step: Step,
    config: DecodeConfig,
    limits: SearchLimits,
    *,
    rules: Sequence[Rule] = (),
    generators: Sequence[Random] = (),
) -> Iterator[int]:
    """Yield the tokens of one sentence as they are chosen, without the end token.

    The search is greedy, or draws samples if `config` says so.
    """
    step = _prepared(step, config, limits, rules, generators)
    for _, token, _ in write_tokens(step, limits):
        if token != limits.eos_id:
            yield token


def restricted(step: Step, config: DecodeConfig, limits: SearchLimits, rules: Sequence[Rule]) -> Step:
    """Wrap a step so that it follows the rules and, if `config` says so, ends sentences at their limit."""
    if rules:
        step = RuledStep(step, rules, limits.sentences)
    return EndedStep(step, limits.max_lengths, eos_id=limits.eos_id) if config.forced_eos else step


def _prepared(
    step: Step, config: DecodeConfig, limits: SearchLimits, rules: Sequence[Rule], generators: Sequence[Random]
) -> Step:
    step = restricted(step, config, limits, rules)
    if not config.sample:
        return step
    return SampledStep(
        step,
        generators,
        temperature=config.temperature,
        top_k=config.top_k,
        top_p=config.top_p,
        at_most_one=config.repetition_penalty >= 1,  # a lower penalty adds probability
    )


def beam_options(config: DecodeConfig) -> BeamOptions:
    """Return the settings of a beam search."""
    return BeamOptions(
        beam=config.beam,
        alpha=config.alpha,
        penalty=LENGTH_PENALTIES[config.length_penalty],
        patience=config.patience,
        nbest=config.nbest,
        wait_for_beam=config.early_stopping == "beam",
    )


def length_divisor(config: DecodeConfig, hypothesis: Hypothesis) -> float:
    """Return the number by which the log-probability of a hypothesis is divided to get its score."""
    return LENGTH_PENALTIES[config.length_penalty](hypothesis.tokens, alpha=config.alpha)


def build_rules(
    config: DecodeConfig,
    *,
    eos_id: int,
    min_lengths: Sequence[int],
    prefixes: Sequence[Sequence[int]] = (),
) -> list[Rule]:
    """Make the rules that `config` sets, leaving out rules without effect.

    `min_lengths` count tokens, with the end token. Sentence b begins with the tokens `prefixes[b]`.
    """
    rules: list[Rule] = []
    if any(prefixes):  # comes first, because a rule that bans every remaining token is ignored
        rules.append(forced_prefix(prefixes))
    if config.repetition_penalty != 1:
        rules.append(repetition_penalty(config.repetition_penalty))
    if config.no_repeat_ngram_size:
        rules.append(no_repeated_ngram(config.no_repeat_ngram_size))
    if config.min_length or config.min_ratio:
        rules.append(minimum_length(min_lengths, eos_id=eos_id))
    return rules
