"""Watch a model from outside, and draw what it does."""

from .draw import draw_attention
from .record import recorded, recorded_attention

__all__ = ["draw_attention", "recorded", "recorded_attention"]
