"""The public names. Each is imported when it is first used, so that `import allyouneed` is quick."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if sys.platform == "win32":
    raise ImportError("allyouneed runs on Linux and macOS; on Windows use WSL")

if TYPE_CHECKING:
    from .apps.cli.progress_bar import ProgressBar as ProgressBar
    from .apps.convert.exports import export_bundle as export_bundle
    from .apps.convert.imports import import_checkpoint as import_checkpoint
    from .apps.documents import DocumentOptions as DocumentOptions
    from .apps.documents import read_document as read_document
    from .apps.documents.document_translation import DocumentTranslation as DocumentTranslation
    from .apps.documents.document_translation import translate_document as translate_document
    from .apps.reports import evaluate_run as evaluate_run
    from .apps.reports import fit as fit
    from .apps.transfer.adaptation import Adaptation as Adaptation
    from .apps.transfer.adaptation import adapt_bundle as adapt_bundle
    from .auto import Draft as Draft
    from .bundle import Bundle as Bundle
    from .config import CleanConfig as CleanConfig
    from .config import CorpusConfig as CorpusConfig
    from .config import DataConfig as DataConfig
    from .config import DecodeConfig as DecodeConfig
    from .config import ModelConfig as ModelConfig
    from .config import Recipe as Recipe
    from .config import TrainConfig as TrainConfig
    from .data.readers import read_pairs as read_pairs
    from .errors import AllYouNeedError as AllYouNeedError
    from .errors import BundleError as BundleError
    from .errors import ConfigError as ConfigError
    from .errors import DataError as DataError
    from .errors import DocumentError as DocumentError
    from .errors import ExportError as ExportError
    from .errors import InputError as InputError
    from .errors import Interrupted as Interrupted
    from .errors import MissingExtraError as MissingExtraError
    from .errors import OutputError as OutputError
    from .errors import TrainingError as TrainingError
    from .evaluation import evaluate as evaluate
    from .nn import MultiHeadAttention as MultiHeadAttention
    from .nn import PositionalEncoding as PositionalEncoding
    from .nn import Transformer as Transformer
    from .recipes import recipe_path as recipe_path
    from .run import Evaluation as Evaluation
    from .run import Evaluator as Evaluator
    from .run import Sample as Sample
    from .run import SilentCallback as SilentCallback
    from .run import TrainingCallback as TrainingCallback
    from .run import Validation as Validation
    from .run import average_bundles as average_bundles
    from .text.glossary import Glossary as Glossary
    from .text.tokenizer import Tokenizer as Tokenizer
    from .train import Update as Update
    from .translator import Alignment as Alignment
    from .translator import Scored as Scored
    from .translator import Translation as Translation
    from .translator import Translator as Translator

    __version__: str

_ROOMS = {
    "auto": ("Draft",),
    "apps.cli.progress_bar": ("ProgressBar",),
    "bundle": ("Bundle",),
    "config": ("CleanConfig", "CorpusConfig", "DataConfig", "DecodeConfig", "ModelConfig", "Recipe", "TrainConfig"),
    "apps.convert.exports": ("export_bundle",),
    "apps.convert.imports": ("import_checkpoint",),
    "data.readers": ("read_pairs",),
    "apps.documents": ("DocumentOptions", "read_document"),
    "errors": (
        "AllYouNeedError",
        "BundleError",
        "ConfigError",
        "DataError",
        "DocumentError",
        "ExportError",
        "InputError",
        "Interrupted",
        "MissingExtraError",
        "OutputError",
        "TrainingError",
    ),
    "evaluation": ("evaluate",),
    "apps.reports": ("evaluate_run", "fit"),
    "nn": ("MultiHeadAttention", "PositionalEncoding", "Transformer"),
    "recipes": ("recipe_path",),
    "run": (
        "Evaluation",
        "Evaluator",
        "Sample",
        "SilentCallback",
        "TrainingCallback",
        "Validation",
        "average_bundles",
    ),
    "text.glossary": ("Glossary",),
    "text.tokenizer": ("Tokenizer",),
    "train": ("Update",),
    "apps.transfer.adaptation": ("Adaptation", "adapt_bundle"),
    "translator": ("Alignment", "Scored", "Translation", "Translator"),
    "apps.documents.document_translation": ("DocumentTranslation", "translate_document"),
}
_ROOM = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_ROOM)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from .machine.interpreter import installed

        return installed("allyouneed")
    if name not in _ROOM:
        raise AttributeError(f"module 'allyouneed' has no attribute {name!r}")
    return getattr(import_module(f".{_ROOM[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
