"""The settings of `[model]`: the sizes and the kind of a Transformer."""

from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError
from .settings import COUNT_OR_NONE, SHARE, Checked, Range, setting

# A larger size is a mistake: a single matrix would fill the memory of any machine.
_WIDTH = Range(at_least=1, at_most=2**16)
_DEPTH = Range(at_least=1, at_most=1_000)
_VOCABULARY = Range(at_least=1, at_most=2**24)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Checked):
    """The sizes of one Transformer. The defaults are `base` in Table 3. Lengths are in tokens."""

    vocab_size: int = setting(37_000, "tokens of the vocabulary, or of the source's if there are two", _VOCABULARY)
    target_vocab_size: int | None = setting(
        None, "tokens of the target's vocabulary; left out: one vocabulary for both sides", _VOCABULARY
    )
    pad_id: int = setting(
        0, "id of the padding token of the vocabulary, or of the source's if there are two", COUNT_OR_NONE
    )
    target_pad_id: int | None = setting(
        None, "id of the padding token of the target's vocabulary; left out: pad_id", COUNT_OR_NONE
    )
    d_model: int = setting(
        512, "width of the embeddings and of every sublayer's output", _WIDTH, paper="512; big: 1,024"
    )
    d_ff: int = setting(
        2048,
        "width of the hidden layer of the feed-forward networks",
        Range(at_least=1, at_most=2**18),
        paper="2,048; big: 4,096",
    )
    heads: int = setting(8, "attention heads of each attention sublayer", _WIDTH, paper="8; big: 16")
    d_k: int | None = setting(
        None, "width of the queries and keys of a head; left out: d_model / heads", _WIDTH, paper="64"
    )
    d_v: int | None = setting(None, "width of the values of a head; left out: d_model / heads", _WIDTH, paper="64")
    encoder_layers: int = setting(6, "layers of the encoder", _DEPTH, paper="6")
    decoder_layers: int = setting(6, "layers of the decoder", _DEPTH, paper="6")
    activation: Literal["relu", "gelu", "silu"] = setting(
        "relu", "activation function of the feed-forward networks", paper="relu"
    )
    norm: Literal["post", "pre"] = setting(
        "post",
        "position of layer normalization: after each residual connection (post) or before each sublayer (pre)",
        paper="post",
    )
    positions: Literal["sinusoidal", "learned", "rotary", "sinusoidal-rotary"] = setting(
        "sinusoidal",
        "position embeddings: sines and cosines, or learned; rotary: no embeddings, but self-attention rotates queries "
        "and keys; sinusoidal-rotary: both",
        paper="sinusoidal; learned in row E of Table 3",
    )
    query_key_norm: bool = setting(
        False, "normalize the queries and keys of self-attention in each head, with learned gains", paper="no"
    )
    tied_embeddings: Literal["none", "target", "all"] = setting(
        "all",
        "embeddings that share their weights with the output projection: of source and target (all), "
        "of the target, or none",
        paper="all",
    )
    projection_bias: bool = setting(
        False,
        "add a bias in the output projection, one number for each token of the target",
        paper="none",
        imported=True,
    )
    max_length: int = setting(
        512, "maximum length of a source or target, in tokens with the special ones", Range(at_least=1, at_most=2**20)
    )
    dropout: float = setting(
        0.1,
        "dropout rate of the embeddings and of every sublayer's output",
        SHARE,
        paper="0.1; big: 0.3, for English–French 0.1",
    )
    attention_dropout: float = setting(0.0, "dropout rate of the attention weights", SHARE, paper="not mentioned")

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name, pad_id, size in (
            ("pad_id", self.pad_id, self.vocab_size),
            ("target_pad_id", self.effective_target_pad_id, self.effective_target_vocab_size),
        ):
            if pad_id >= size:
                raise ConfigError(f"{name} must be an id of the vocabulary of {size}; got {pad_id}")
        if self.positions != "learned" and self.d_model % 2:
            raise ConfigError(f"d_model must be even, a sine and a cosine for each frequency; got {self.d_model}")
        if self.d_model % self.heads and None in (self.d_k, self.d_v):
            raise ConfigError(
                "d_model must be a multiple of heads, or d_k and d_v be set; "
                f"got {self.describe_values('d_model', 'heads')}"
            )
        if self.is_rotary and self.effective_d_k < 2:
            raise ConfigError(
                "rotary positions need heads at least 2 wide, a pair of numbers to rotate; "
                f"got {self.describe_values('d_model', 'heads', 'd_k')}"
            )
        if self.tied_embeddings == "all" and self.effective_target_vocab_size != self.vocab_size:
            raise ConfigError(
                f'tied_embeddings="all" needs one vocabulary; got {self.vocab_size} ids for the source '
                f"and {self.effective_target_vocab_size} for the target"
            )

    @property
    def is_rotary(self) -> bool:
        """True if self-attention rotates queries and keys."""
        return self.positions.endswith("rotary")

    @property
    def effective_d_k(self) -> int:
        """The numbers of a query or key in each head."""
        return self.d_k or self.d_model // self.heads

    @property
    def effective_d_v(self) -> int:
        """The numbers of a value in each head."""
        return self.d_v or self.d_model // self.heads

    @property
    def effective_target_pad_id(self) -> int:
        """The id that pads target sequences."""
        return self.pad_id if self.target_pad_id is None else self.target_pad_id

    @property
    def effective_target_vocab_size(self) -> int:
        """The number of ids on the target side."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size

    @property
    def weight_bytes(self) -> int:
        """The bytes of all matrices in float32: embeddings, positions, attention and feed-forward layers."""
        tables = self.d_model * (self.vocab_size + self.effective_target_vocab_size + 2 * self.max_length)
        attention = 2 * self.d_model * self.heads * (self.effective_d_k + self.effective_d_v)
        feed_forward = 2 * self.d_model * self.d_ff
        layers = (self.encoder_layers + 2 * self.decoder_layers) * attention
        return 4 * (tables + layers + (self.encoder_layers + self.decoder_layers) * feed_forward)
