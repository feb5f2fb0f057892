"""What neither CTranslate2 nor `MarianMTModel` can express."""

from ..config import ModelConfig


def common_limit(config: ModelConfig, program: str) -> str:
    """Why `program` cannot express a model with this config: its heads, or two vocabularies; empty if it can."""
    width = config.d_model // config.heads
    if config.d_model % config.heads or (config.d_k or width, config.d_v or width) != (width, width):
        return (
            f"{program} has heads of width d_model / heads alone; this model has d_model={config.d_model}, "
            f"heads={config.heads}, d_k={config.d_k}, d_v={config.d_v}"
        )
    if config.target_vocab_size is not None:
        return f"{program} has one vocabulary for both sides; this model has a vocabulary for each side"
    return ""
