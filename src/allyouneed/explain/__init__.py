"""Watch a model from outside, and draw what it does."""

from .data import trace_values
from .draw import draw_attention, save
from .figures import FIGURES, attention_figures
from .page import build_page
from .record import recorded, recorded_attention
from .story import Trace, describe_heads, trace_translation
from .theory import THEORY

__all__ = [
    "FIGURES",
    "THEORY",
    "Trace",
    "trace_values",
    "attention_figures",
    "draw_attention",
    "describe_heads",
    "build_page",
    "recorded",
    "recorded_attention",
    "save",
    "trace_translation",
]
