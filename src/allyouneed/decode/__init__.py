"""Weights → ids: searches over a `Step`."""

from .beam import beam_search
from .beam_options import BeamOptions, length_penalty, plain_length_penalty
from .constrained import beam_width, constrained_beam_search
from .constraint_state import PhraseConstraint, WordBoundaries, max_constrained_length, min_constrained_length
from .diverse import diverse_beam_search
from .ended import best_first
from .greedy import greedy_search, most_likely
from .likelihood import align_targets, alignment_layer, cross_attention, mean_probability, target_log_probabilities
from .repetition import is_repetitive, longest_repetition
from .rules import (
    Limit,
    Order,
    Rule,
    apply_rules,
    at_most,
    forced_end,
    forced_prefix,
    in_order,
    minimum_length,
    no_repeated_ngram,
    repetition_penalty,
    with_rules,
)
from .sample import sample_search, sampling_probabilities
from .search import build_rules, length_divisor, search, stream_tokens
from .step import SURE, Hypothesis, SearchLimits, State, Step, make_step, never_cancelled
from .stepwise import generate_stepwise

__all__ = [
    "SURE",
    "BeamOptions",
    "Hypothesis",
    "Limit",
    "Order",
    "PhraseConstraint",
    "Rule",
    "SearchLimits",
    "State",
    "Step",
    "WordBoundaries",
    "align_targets",
    "alignment_layer",
    "apply_rules",
    "at_most",
    "beam_search",
    "beam_width",
    "best_first",
    "build_rules",
    "constrained_beam_search",
    "cross_attention",
    "diverse_beam_search",
    "forced_end",
    "forced_prefix",
    "generate_stepwise",
    "greedy_search",
    "in_order",
    "is_repetitive",
    "length_divisor",
    "length_penalty",
    "longest_repetition",
    "make_step",
    "max_constrained_length",
    "mean_probability",
    "min_constrained_length",
    "minimum_length",
    "most_likely",
    "never_cancelled",
    "no_repeated_ngram",
    "plain_length_penalty",
    "repetition_penalty",
    "sample_search",
    "sampling_probabilities",
    "search",
    "stream_tokens",
    "target_log_probabilities",
    "with_rules",
]
