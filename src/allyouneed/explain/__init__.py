"""Watch a model from outside, and draw what it does."""

from .draw import draw_attention, save
from .figures import FIGURES, attention_figures
from .page import attention_layers, build_page
from .recording import recorded, recorded_attention
from .theory import THEORY
from .trace import Trace, describe_heads, trace_translation
from .values import search_steps, trace_values

__all__ = [
    "FIGURES",
    "THEORY",
    "Trace",
    "attention_figures",
    "attention_layers",
    "build_page",
    "describe_heads",
    "draw_attention",
    "recorded",
    "recorded_attention",
    "save",
    "search_steps",
    "trace_translation",
    "trace_values",
]
