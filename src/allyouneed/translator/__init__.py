"""Text → text: the product."""

from .translation import Scored, Translation
from .translator import Translator

__all__ = ["Scored", "Translation", "Translator"]
