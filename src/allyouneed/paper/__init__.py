"""The paper's numbers as commands: Table 3, its ablations on other data, and figures 3 to 5 from a model of ours."""

from .ablate import Result, ablate, picture, small_base
from .figures import Finding, findings
from .table import ROWS, Row, count_parameters, flops_per_pair_of_tokens, vocabulary_of_printed

__all__ = [
    "ROWS",
    "Finding",
    "Result",
    "Row",
    "ablate",
    "count_parameters",
    "findings",
    "flops_per_pair_of_tokens",
    "picture",
    "small_base",
    "vocabulary_of_printed",
]
