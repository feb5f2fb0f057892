"""How good a model is: scores with intervals, comparisons and baselines."""

from .model_scores import ScoredSet, TranslatedSet, evaluate, evaluate_greedily, translate_set

__all__ = ["ScoredSet", "TranslatedSet", "evaluate", "evaluate_greedily", "translate_set"]
