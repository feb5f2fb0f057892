"""The whole of Figure 1: ids of a source and of a target so far → logits of what comes next."""

from typing import Any, NamedTuple

from torch import Tensor, nn

from ..config import ModelConfig
from ..device import require_memory
from ..errors import ConfigError, InputError
from .attention import MultiHeadAttention
from .decoder import Decoder, DecoderState
from .embedding import Embedding
from .encoder import Encoder
from .mask import causal_mask, padding_mask
from .module import Module
from .position import LearnedPositions, PositionalEncoding
from .projection import Projection

POSITIONS: dict[str, type[PositionalEncoding | LearnedPositions]]
POSITIONS = {"sinusoidal": PositionalEncoding, "learned": LearnedPositions}


class Memory(NamedTuple):
    """The output of the encoder, (B, S, D), and the mask of its padding, (B, 1, 1, S)."""

    hidden_states: Tensor
    attn_mask: Tensor


class Transformer(Module):
    """The encoder-decoder Transformer.

    `model(source, target)` gives logits (B, T, V) for ids (B, S) and (B, T): those at position t are
    for the token after `target[:, t]`. Padding is at the end of a row. Refuses ids outside the
    vocabulary and sequences longer than `config.max_length`.

    `attention` is the class of its self-attention, `position` that of its positions. Refuses a `config` that names
    parts younger than the paper, unless these are handed in; `allyouneed.younger.build_model` does so.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        attention: type[MultiHeadAttention] = MultiHeadAttention,
        position: type[PositionalEncoding | LearnedPositions] | None = None,
    ) -> None:
        super().__init__()
        if position is None and config.positions not in POSITIONS:
            raise ConfigError(f'positions="{config.positions}" needs a part of allyouneed.younger; use its build_model')
        if config.query_key_norm and attention is MultiHeadAttention:
            raise ConfigError("query_key_norm=true needs a part of allyouneed.younger; use its build_model")
        require_memory("the weights of this model", config.weight_bytes)
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
        """The output of the decoder, before the projection: (B, S), (B, T) → (B, T, D)."""
        return self._decode_hidden_states(target, self.encode(source))

    def encode(self, source: Tensor) -> Memory:
        """Encode the source. Shapes: (B, S) → (B, S, D)."""
        require_rows("source", source)
        attn_mask = padding_mask(source, self.config.pad_id)
        x = self.source_position(self.source_embedding(source))
        return Memory(self.encoder(x, attn_mask), attn_mask)

    def decode(self, target: Tensor, memory: Memory) -> Tensor:
        """Logits of the next token at every position of a target. Shapes: (B, T) → (B, T, V)."""
        return self.projection(self._decode_hidden_states(target, memory))

    def start(self, source: Tensor) -> DecoderState:
        """Encode the source (B, S). Returns the state before the first target token, for `step`."""
        return self.decoder.start(*self.encode(source))

    def step(self, last: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """The last tokens (N,) and a state → logits of the next token, (N, V), and the state after the last tokens."""
        x = self.target_position(self.target_embedding(last[:, None]), start=state.length)
        x, state = self.decoder.step(x, state)
        return self.projection(x[:, 0]), state

    def _decode_hidden_states(self, target: Tensor, memory: Memory) -> Tensor:
        require_rows("target", target)
        x = self.target_position(self.target_embedding(target))
        mask = causal_mask(target.size(1), device=target.device)
        return self.decoder(x, memory.hidden_states, memory.attn_mask, mask)

    def parameter_count(self) -> int:
        """The number of learned parameters; a shared table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


def require_rows(name: str, ids: Tensor) -> None:
    """Refuse ids that are not one row for each sentence."""
    if ids.dim() != 2 or ids.size(1) == 0:
        raise InputError(f"{name} must be ids of shape (sentences, length); got shape {tuple(ids.shape)}")
