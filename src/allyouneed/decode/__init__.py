"""Searches for the most likely translation, with a model that predicts one token at a time: a `Step`."""

from .beam import beam_search
from .beam_options import BeamOptions, length_penalty, plain_length_penalty
from .greedy import greedy_search, write_tokens
from .rules import (
    EndedStep,
    Limit,
    Order,
    Rule,
    RuledStep,
    Spelling,
    at_most,
    forced_prefix,
    in_order,
    minimum_length,
    no_repeated_ngram,
    repetition_penalty,
)
from .sample import SampledStep, sampling_probabilities
from .search import beam_options, build_rules, length_divisor, restricted, search, stream_tokens
from .step import (
    SURE,
    Continuation,
    Hypothesis,
    Restriction,
    SearchLimits,
    Step,
    WrappedStep,
    best_first,
    never_cancelled,
)

__all__ = [
    "SURE",
    "BeamOptions",
    "Continuation",
    "EndedStep",
    "Hypothesis",
    "Limit",
    "Order",
    "Restriction",
    "Rule",
    "RuledStep",
    "SampledStep",
    "SearchLimits",
    "Spelling",
    "Step",
    "WrappedStep",
    "at_most",
    "beam_options",
    "beam_search",
    "best_first",
    "build_rules",
    "forced_prefix",
    "greedy_search",
    "in_order",
    "length_divisor",
    "length_penalty",
    "minimum_length",
    "never_cancelled",
    "no_repeated_ngram",
    "plain_length_penalty",
    "repetition_penalty",
    "restricted",
    "sampling_probabilities",
    "search",
    "stream_tokens",
    "write_tokens",
]
