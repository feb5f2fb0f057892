"""Weights → ids: searches over a `Step`."""

from .beam import beam_search, length_penalty
from .greedy import greedy_search
from .step import Hypothesis, State, Step, step_of

__all__ = ["Hypothesis", "State", "Step", "beam_search", "greedy_search", "length_penalty", "step_of"]
