"""Text → text: the product."""

from .translation import Scored, Translation
from .translator import WINDOW, Translator

__all__ = ["WINDOW", "Scored", "Translation", "Translator"]
