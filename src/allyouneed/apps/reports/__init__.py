"""Reports of a run: its page, comparisons, and the final test with advice; and `fit`, which also writes them."""

from .final_test import evaluate_run
from .fitting import fit

__all__ = ["evaluate_run", "fit"]
