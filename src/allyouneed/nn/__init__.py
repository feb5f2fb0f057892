"""Figure 1, one file for each box.

All files here write shapes with the same letters:

    B sentences   S source length   T target length     L any length   N hypotheses
    D d_model     H heads           K width of a head   F d_ff         V vocabulary

The batch dimension always comes first. A mask is a bool tensor, in which True means "may attend".
"""

from .attention import KVCache, MultiHeadAttention, attention_weights
from .decoder import Decoder, DecoderBlock, DecoderCache
from .embedding import Embedding
from .encoder import Encoder, EncoderBlock
from .feedforward import FeedForward
from .mask import causal_mask, padding_mask
from .normalization import LayerNorm
from .position import LearnedPositions, PositionalEncoding, sinusoids
from .projection import Projection
from .residual import Residual
from .transformer import Memory, Transformer

__all__ = [
    "Decoder",
    "DecoderBlock",
    "DecoderCache",
    "Embedding",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "KVCache",
    "LayerNorm",
    "LearnedPositions",
    "Memory",
    "MultiHeadAttention",
    "PositionalEncoding",
    "Projection",
    "Residual",
    "Transformer",
    "attention_weights",
    "causal_mask",
    "padding_mask",
    "sinusoids",
]
