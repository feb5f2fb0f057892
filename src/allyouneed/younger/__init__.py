"""Parts that the paper does not have: subclasses of parts in `nn/`, which are handed to `Transformer`.

`docs/since-2017.md` has their equations and what each of them gained.
"""

from ..config import ModelConfig
from ..machine.device import require_memory
from ..nn import MultiHeadAttention, Transformer
from ..nn.position import PositionalEncoding
from .query_key_norm import QueryKeyNormAttention, RotaryQueryKeyNormAttention
from .rotary import NoPositions, RotaryAttention

__all__ = [
    "NoPositions",
    "QueryKeyNormAttention",
    "RotaryAttention",
    "RotaryQueryKeyNormAttention",
    "build_model",
]

# The position vectors that are added to the embeddings.
POSITIONS = {"rotary": NoPositions, "sinusoidal-rotary": PositionalEncoding}


def build_model(config: ModelConfig) -> Transformer:
    """Make the Transformer that `config` describes, including parts that are younger than the paper.

    Refuses a model whose weights do not fit into this machine's memory.
    """
    require_memory("the weights of this model", config.weight_bytes)
    if config.query_key_norm:
        attention: type[MultiHeadAttention] = RotaryQueryKeyNormAttention if config.is_rotary else QueryKeyNormAttention
    else:
        attention = RotaryAttention if config.is_rotary else MultiHeadAttention
    return Transformer(config, attention=attention, position=POSITIONS.get(config.positions))
