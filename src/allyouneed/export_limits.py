"""The formats that a bundle can be exported to (docs/export.md), and why a format cannot express some models."""

from .config import ModelConfig


def exportable(config: ModelConfig) -> dict[str, str]:
    """For every format why a model with this config cannot be exported to it, in a sentence; empty where it can."""
    return {
        "ctranslate2": _width_limit(config, "CTranslate2"),
        "onnx": "",
        "huggingface": _marian_limit(config) or _width_limit(config, "MarianMTModel"),
        "html": "",
    }


def describe_exports(config: ModelConfig) -> str:
    """The formats in a line: those that are possible, and the reason of every other."""
    reasons = exportable(config)
    possible = ", ".join(name for name, reason in reasons.items() if not reason)
    return "; ".join([possible, *(f"not {name}: {reason}" for name, reason in reasons.items() if reason)])


def _marian_limit(config: ModelConfig) -> str:
    if config.norm == "pre":
        return 'MarianMTModel is post-norm alone; this model has model.norm="pre"'
    if config.positions == "learned":
        return 'MarianMTModel has sinusoidal positions alone; this model has model.positions="learned"'
    if config.target_vocab_size is not None and config.tied_embeddings != "all":
        return "MarianMTModel has one table of ids for both sides; this model has a vocabulary for each side"
    return ""


def _width_limit(config: ModelConfig, program: str) -> str:
    """What neither CTranslate2 nor `MarianMTModel` can express."""
    width = config.d_model // config.heads
    if config.d_model % config.heads or (config.d_k or width, config.d_v or width) != (width, width):
        return (
            f"{program} has heads of width d_model / heads alone; this model has d_model={config.d_model}, "
            f"heads={config.heads}, d_k={config.d_k}, d_v={config.d_v}"
        )
    return ""
