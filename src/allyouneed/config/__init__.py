"""Every setting.

A recipe is a TOML file of five tables, `[data] [clean] [model] [train] [decode]`; their keys are the fields of the
classes in this room. `section.key=value` on a command line overrides one of them. `dataclasses.fields` of a section
describe its settings: type, default, and in the metadata `help`, `range` and `paper`.
"""

from .data_config import CleanConfig, CorpusConfig, DataConfig
from .decode_config import SPANS, DecodeConfig
from .model_config import ModelConfig
from .recipe import FROM_VOCABULARY, Recipe, full_names
from .train_config import TrainConfig

__all__ = [
    "FROM_VOCABULARY",
    "SPANS",
    "CleanConfig",
    "CorpusConfig",
    "DataConfig",
    "DecodeConfig",
    "ModelConfig",
    "Recipe",
    "TrainConfig",
    "full_names",
]
