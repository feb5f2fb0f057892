"""How good a model is: scores with intervals, comparisons, baselines; and `fit`, which scores while it trains."""

from .final_test import evaluate_run
from .fitting import fit
from .model_scores import ScoredSet, TranslatedSet, evaluate, evaluate_greedily, translate_set

__all__ = ["ScoredSet", "TranslatedSet", "evaluate", "evaluate_greedily", "evaluate_run", "fit", "translate_set"]
