"""All settings.

A recipe is a TOML file with five tables, `[data] [clean] [model] [train] [decode]`. Their keys are the fields of the
classes in this folder. On a command line, `section.key=value` overrides a setting. `dataclasses.fields` of a section
describes its settings: type, default, and in the metadata `help`, `range` and `paper`.

Classes are imported when they are first used, because a translation does not need the settings of training.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .data_config import CleanConfig as CleanConfig
    from .data_config import CorpusConfig as CorpusConfig
    from .data_config import DataConfig as DataConfig
    from .decode_config import SPANS as SPANS
    from .decode_config import DecodeConfig as DecodeConfig
    from .model_config import ModelConfig as ModelConfig
    from .recipe import FROM_VOCABULARY as FROM_VOCABULARY
    from .recipe import Recipe as Recipe
    from .recipe import full_names as full_names
    from .train_config import TrainConfig as TrainConfig

_FILES = {
    "data_config": ("CleanConfig", "CorpusConfig", "DataConfig"),
    "decode_config": ("SPANS", "DecodeConfig"),
    "model_config": ("ModelConfig",),
    "recipe": ("FROM_VOCABULARY", "Recipe", "full_names"),
    "train_config": ("TrainConfig",),
}
_FILE = {name: file for file, names in _FILES.items() for name in names}

__all__ = sorted(_FILE)


def __getattr__(name: str) -> object:
    if name not in _FILE:
        raise AttributeError(f"module 'allyouneed.config' has no attribute {name!r}")
    return getattr(import_module(f".{_FILE[name]}", __name__), name)
