"""Watch a model from outside, and draw what it does."""

from .claims import Claim, sharpest_claims
from .draw import draw_attention, save
from .figures import FIGURES, attention_figures
from .heads import Head, describe_heads
from .notebook import Explanation, explain
from .page import build_page
from .recording import recorded, recorded_attention
from .theory import THEORY
from .trace import Trace, trace_translation
from .values import attention_layers, search_steps, trace_values

__all__ = [
    "FIGURES",
    "THEORY",
    "Claim",
    "Explanation",
    "Head",
    "Trace",
    "attention_figures",
    "attention_layers",
    "build_page",
    "describe_heads",
    "draw_attention",
    "explain",
    "recorded",
    "recorded_attention",
    "save",
    "search_steps",
    "sharpest_claims",
    "trace_translation",
    "trace_values",
]
