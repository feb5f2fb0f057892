"""All of Figure 1: from the ids of a source, and of the target so far, to the logits of the next token."""

from typing import Any, NamedTuple

from torch import Tensor, nn

from ..config import ModelConfig
from ..errors import InputError
from ..machine.device import move
from .attention import MultiHeadAttention
from .decoder import Decoder, DecoderCache
from .embedding import Embedding
from .encoder import Encoder
from .mask import causal_mask, padding_mask
from .module import Module
from .position import LearnedPositions, PositionalEncoding
from .projection import Projection

POSITIONS: dict[str, type[PositionalEncoding | LearnedPositions]]
POSITIONS = {"sinusoidal": PositionalEncoding, "learned": LearnedPositions}


class Memory(NamedTuple):
    """The output of the encoder, (B, S, D), and the padding mask of the source, (B, 1, 1, S)."""

    hidden_states: Tensor
    attn_mask: Tensor

    def select(self, sentences: Tensor) -> "Memory":
        """Return the memory of these sentences, given by index; an index may occur more than once."""
        return Memory(self.hidden_states[sentences], self.attn_mask[sentences])


class Transformer(Module):
    """The encoder-decoder Transformer.

    `model(source, target)` takes ids of shapes (B, S) and (B, T) and returns logits (B, T, V). The logits at position t
    predict the token after `target[:, t]`. Padding must be at the end of a row. Refuses ids outside the vocabulary and
    sequences longer than `config.max_length`. The ids may be on the CPU while the model is on a GPU.

    `attention` is the class of all self-attention, and `position` the class of the positions. The defaults are the
    paper's; `allyouneed.younger.build_model` chooses the classes that a config names.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        attention: type[MultiHeadAttention] = MultiHeadAttention,
        position: type[PositionalEncoding | LearnedPositions] | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        position = position or POSITIONS[config.positions]
        sizes: dict[str, Any] = {
            "d_model": config.d_model, "max_length": config.max_length, "dropout": config.dropout,
        }  # fmt: skip
        self.source_embedding = Embedding(vocab_size=config.vocab_size, d_model=config.d_model)
        self.source_position = position(**sizes)
        self.encoder = Encoder(config, attention)
        self.target_embedding = (
            self.source_embedding
            if config.tied_embeddings == "all"
            else Embedding(vocab_size=config.effective_target_vocab_size, d_model=config.d_model)
        )
        self.target_position = position(**sizes)
        self.decoder = Decoder(config, attention)
        self.projection = Projection(
            d_model=config.d_model,
            vocab_size=config.effective_target_vocab_size,
            table=None if config.tied_embeddings == "none" else self.target_embedding.table,
            bias=config.projection_bias,
        )
        for module in (*self.encoder.modules(), *self.decoder.modules()):
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)  # Glorot and Bengio (2010)
                nn.init.zeros_(module.bias)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decode(target, self.encode(source))

    def hidden_states(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the output of the decoder, before the projection. Shapes: (B, S) and (B, T) → (B, T, D)."""
        return self._decode_hidden_states(target, self.encode(source))

    def encode(self, source: Tensor) -> Memory:
        """Encode the source. Shapes: ids (B, S) → hidden states (B, S, D), with their mask."""
        require_rows("source", source)
        x = self.source_position(self.source_embedding(source))
        attn_mask = padding_mask(move(source, x.device), self.config.pad_id)
        return Memory(self.encoder(x, attn_mask), attn_mask)

    def decode(self, target: Tensor, memory: Memory, cache: DecoderCache | None = None) -> Tensor:
        """Compute the logits of the next token at every position of a target. Shapes: (B, T) → (B, T, V).

        With a `cache`, `target` has only the tokens that are not yet in the cache, (N, T) for N hypotheses. The call
        adds them to the cache.
        """
        return self.projection(self._decode_hidden_states(target, memory, cache))

    def new_cache(self) -> DecoderCache:
        """Make an empty cache for `decode`."""
        return DecoderCache(len(self.decoder.layers))

    def _decode_hidden_states(self, target: Tensor, memory: Memory, cache: DecoderCache | None = None) -> Tensor:
        require_rows("target", target)
        past = cache.length if cache else 0
        x = self.target_position(self.target_embedding(target), start=past)
        mask = causal_mask(target.size(1), past, device=x.device)
        return self.decoder(x, memory.hidden_states, memory.attn_mask, mask, cache)

    def parameter_count(self) -> int:
        """Return the number of learned parameters. A shared table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


def require_rows(name: str, ids: Tensor) -> None:
    """Refuse ids that do not have the shape (sentences, length), with a length of at least 1."""
    if ids.dim() != 2 or ids.size(1) == 0:
        raise InputError(f"{name} must be ids of shape (sentences, length); got shape {tuple(ids.shape)}")
