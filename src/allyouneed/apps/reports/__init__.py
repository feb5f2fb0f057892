"""Reports of a run: its page, comparisons, the final test with advice; and `fit`, which trains with all of these."""

from .final_test import evaluate_run
from .fitting import fit

__all__ = ["evaluate_run", "fit"]
