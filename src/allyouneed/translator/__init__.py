"""Translate texts with a bundle, from splitting to joining the results."""

from .alignment import Alignment
from .generation import without_repetition
from .segments import Segment
from .split_texts import SplitTexts
from .translation import Scored, Translation
from .translator import WINDOW, Translator

__all__ = [
    "WINDOW", "Alignment", "Scored", "Segment", "SplitTexts", "Translation", "Translator",
    "without_repetition",
]  # fmt: skip
