"""Watch a model from outside, and draw what it does."""

from .claims import Claim, sharpest_claims
from .comparison import compare_traces, describe_comparison, load_moment
from .draw import draw_attention, save
from .figures import FIGURES, attention_figures
from .heads import Head, describe_heads
from .page import Explanation, build_page, build_page_of_two, explain
from .recording import recorded, recorded_attention
from .theory import THEORY
from .trace import Trace, trace_translation
from .values import search_steps, trace_values

__all__ = [
    "FIGURES",
    "THEORY",
    "Claim",
    "Explanation",
    "Head",
    "Trace",
    "attention_figures",
    "build_page",
    "build_page_of_two",
    "compare_traces",
    "describe_comparison",
    "describe_heads",
    "draw_attention",
    "explain",
    "load_moment",
    "recorded",
    "recorded_attention",
    "save",
    "search_steps",
    "sharpest_claims",
    "trace_translation",
    "trace_values",
]
