"""How good a model is: scores with intervals, comparisons, baselines; and `fit`, which scores while it trains."""

from .fitting import fit
from .model_scores import ScoredSet, TranslatedSet, evaluate, evaluate_greedily, translate_set

__all__ = ["ScoredSet", "TranslatedSet", "evaluate", "evaluate_greedily", "fit", "translate_set"]
