"""Searches over a `Step`: ids of a translation from a model that writes one token a step."""

from .beam import beam_search
from .beam_options import BeamOptions, length_penalty, plain_length_penalty
from .greedy import greedy_search, write_tokens
from .rules import (
    Limit,
    Order,
    Restriction,
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
from .sample import sample_tokens, sampling_probabilities
from .search import beam_options, build_rules, length_divisor, search, stream_tokens, with_rules
from .step import SURE, Continuation, Hypothesis, SearchLimits, Step, best_first, never_cancelled

__all__ = [
    "SURE",
    "BeamOptions",
    "Continuation",
    "Hypothesis",
    "Limit",
    "Order",
    "Restriction",
    "Rule",
    "RuledStep",
    "SearchLimits",
    "Spelling",
    "Step",
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
    "sample_tokens",
    "sampling_probabilities",
    "search",
    "stream_tokens",
    "with_rules",
    "write_tokens",
]
