"""The paper's numbers as commands: Table 3, its ablations on other data, and figures 3 to 5 from one of our models."""

from .ablate import AblationResult, ablate, ablation_figure, build_small_base
from .attention_patterns import AttentionPattern, find_patterns
from .table import ROWS, Row, count_parameters, flops_per_token_pair, matching_vocabulary

__all__ = [
    "ROWS",
    "AblationResult",
    "AttentionPattern",
    "Row",
    "ablate",
    "ablation_figure",
    "build_small_base",
    "count_parameters",
    "find_patterns",
    "flops_per_token_pair",
    "matching_vocabulary",
]
