"""Watch a model from outside, and draw what it does. Each public name is imported from its file on first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .claims import Claim as Claim
    from .claims import sharpest_claims as sharpest_claims
    from .comparison import compare_traces as compare_traces
    from .comparison import describe_comparison as describe_comparison
    from .comparison import load_moment as load_moment
    from .draw import draw_attention as draw_attention
    from .draw import save as save
    from .figures import FIGURES as FIGURES
    from .figures import attention_figures as attention_figures
    from .heads import Head as Head
    from .heads import describe_heads as describe_heads
    from .page import Explanation as Explanation
    from .page import build_page as build_page
    from .page import build_page_of_two as build_page_of_two
    from .page import explain as explain
    from .recording import recorded as recorded
    from .recording import recorded_attention as recorded_attention
    from .theory import THEORY as THEORY
    from .trace import Trace as Trace
    from .trace import trace_translation as trace_translation
    from .values import search_steps as search_steps
    from .values import trace_values as trace_values

_FILES = {
    "claims": ("Claim", "sharpest_claims"),
    "comparison": ("compare_traces", "describe_comparison", "load_moment"),
    "draw": ("draw_attention", "save"),
    "figures": ("FIGURES", "attention_figures"),
    "heads": ("Head", "describe_heads"),
    "page": ("Explanation", "build_page", "build_page_of_two", "explain"),
    "recording": ("recorded", "recorded_attention"),
    "theory": ("THEORY",),
    "trace": ("Trace", "trace_translation"),
    "values": ("search_steps", "trace_values"),
}
_FILE = {name: file for file, names in _FILES.items() for name in names}

__all__ = sorted(_FILE)


def __getattr__(name: str) -> object:
    if name not in _FILE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_FILE[name]}", __name__), name)
