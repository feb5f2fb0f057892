"""Texts → translations."""

from .alignment import Alignment
from .generation import without_repetition
from .translation import Scored, Translation
from .translator import WINDOW, Translator

__all__ = ["WINDOW", "Alignment", "Scored", "Translation", "Translator", "without_repetition"]
