"""Texts → translations."""

from importlib import import_module

from .alignment import Alignment
from .generation import without_repetition
from .segments import Segment
from .text_splitter import SplitTexts
from .translation import Scored, Translation
from .translator import WINDOW, Translator

__all__ = [
    "WINDOW", "Alignment", "Scored", "Segment", "SplitTexts", "Translation", "Translator",
    "without_repetition",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Documents are an app; programs that import `translate_document` from here find it in the package."""
    if name == "translate_document":
        return getattr(import_module(__package__.partition(".")[0]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
