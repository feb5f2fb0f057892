"""The model of `nn/` once more, written for translating: the same logits from fewer and larger operations."""

from .eager import FastTransformer, Precision, pick_precision
from .kv_cache import CachedState

__all__ = ["CachedState", "FastTransformer", "Precision", "pick_precision"]
