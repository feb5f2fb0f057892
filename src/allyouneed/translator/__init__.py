"""Texts → translations."""

from .alignment import Alignment
from .document_translation import DocumentTranslation, translate_document
from .generation import without_repetition
from .segments import Segment
from .split_texts import SplitTexts
from .translation import Scored, Translation
from .translator import WINDOW, Translator

__all__ = [
    "WINDOW", "Alignment", "DocumentTranslation", "Scored", "Segment", "SplitTexts", "Translation", "Translator",
    "translate_document", "without_repetition",
]  # fmt: skip
