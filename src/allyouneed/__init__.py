"""The front door: the public names, each fetched from its room when it is first asked for.

So `import allyouneed` and `allyouneed --help` do not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .bundle import Bundle
    from .config import DataConfig, DecodeConfig, ModelConfig, Recipe, TrainConfig
    from .errors import (
        AllYouNeedError,
        BundleError,
        ConfigError,
        DataError,
        InputError,
        OutputError,
    )
    from .nn import MultiHeadAttention, PositionalEncoding, Transformer
    from .recipes import recipe_path
    from .run import fit
    from .text.tokenizer import Tokenizer
    from .translator import Translator

_ROOMS = {
    "AllYouNeedError": "errors",
    "Bundle": "bundle",
    "BundleError": "errors",
    "ConfigError": "errors",
    "DataConfig": "config",
    "DataError": "errors",
    "DecodeConfig": "config",
    "InputError": "errors",
    "ModelConfig": "config",
    "MultiHeadAttention": "nn",
    "OutputError": "errors",
    "PositionalEncoding": "nn",
    "Recipe": "config",
    "Tokenizer": "text.tokenizer",
    "TrainConfig": "config",
    "Transformer": "nn",
    "Translator": "translator",
    "fit": "run",
    "recipe_path": "recipes",
}

__all__ = [
    "AllYouNeedError",
    "Bundle",
    "BundleError",
    "ConfigError",
    "DataConfig",
    "DataError",
    "DecodeConfig",
    "InputError",
    "ModelConfig",
    "MultiHeadAttention",
    "OutputError",
    "PositionalEncoding",
    "Recipe",
    "Tokenizer",
    "TrainConfig",
    "Transformer",
    "Translator",
    "fit",
    "recipe_path",
]


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'allyouneed' has no attribute {name!r}")
    return getattr(import_module(f".{_ROOMS[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
