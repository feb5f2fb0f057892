"""Watch a model from outside, and draw what it does."""

from .data import as_data
from .draw import draw_attention, save
from .figures import FIGURES, attention_figures
from .page import page_of
from .record import recorded, recorded_attention
from .story import Story, heads_of, tell
from .theory import THEORY

__all__ = [
    "FIGURES",
    "THEORY",
    "Story",
    "as_data",
    "attention_figures",
    "draw_attention",
    "heads_of",
    "page_of",
    "recorded",
    "recorded_attention",
    "save",
    "tell",
]
