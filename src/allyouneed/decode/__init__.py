"""Weights → ids: searches over a `Step`."""

from .align import alignment_layer, cross_attention, source_of_each
from .beam import beam_search, best_first, length_penalty, plain_length_penalty
from .constrained import beam_width, constrained_beam_search
from .demand import Phrase, Seams, longest_need
from .diverse import diverse_beam_search
from .greedy import greedy_search, likeliest
from .likelihood import log_probabilities_of
from .loops import longest_loop, runs_in_circles
from .rules import (
    Order,
    Rule,
    at_most,
    forced_prefix,
    in_order,
    no_early_end,
    no_repeated_ngram,
    repetition_penalty,
    with_rules,
)
from .sample import sample_search
from .search import penalty_of, rules_of, search, words_of
from .step import Hypothesis, State, Step, step_of
from .walk import walk

__all__ = [
    "Hypothesis",
    "Order",
    "Phrase",
    "Rule",
    "Seams",
    "State",
    "Step",
    "alignment_layer",
    "at_most",
    "beam_search",
    "beam_width",
    "best_first",
    "constrained_beam_search",
    "cross_attention",
    "diverse_beam_search",
    "forced_prefix",
    "greedy_search",
    "in_order",
    "length_penalty",
    "likeliest",
    "log_probabilities_of",
    "longest_loop",
    "longest_need",
    "no_early_end",
    "no_repeated_ngram",
    "penalty_of",
    "plain_length_penalty",
    "repetition_penalty",
    "rules_of",
    "runs_in_circles",
    "sample_search",
    "search",
    "source_of_each",
    "step_of",
    "walk",
    "with_rules",
    "words_of",
]
