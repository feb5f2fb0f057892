"""Every setting.

A recipe is a TOML file of five tables, `[data] [clean] [model] [train] [decode]`, whose keys are the fields
below. `section.key=value` on a command line overrides one of them. `dataclasses.fields` of a section describe
its settings: type, default, and in the metadata `help`, `range` and `paper`.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

from .errors import ConfigError
from .legacy import upgrade_recipe
from .settings import (
    COUNT,
    COUNT_OR_NONE,
    SEED,
    SHARE,
    Checked,
    Range,
    apply_overrides,
    build_settings,
    read_tables,
    refuse_unknown,
    setting,
)

# A larger size is a mistake: one matrix of it would fill the memory of any machine.
_WIDTH = Range(at_least=1, at_most=2**16)
_DEPTH = Range(at_least=1, at_most=1_000)
_VOCABULARY = Range(at_least=1, at_most=2**24)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Checked):
    """The sizes of one Transformer; the defaults are Table 3's `base`. Lengths in tokens."""

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
        "where layer normalization stands: after each residual connection (post) or before each sublayer (pre)",
        paper="post",
    )
    positions: Literal["sinusoidal", "learned"] = setting(
        "sinusoidal",
        "position embeddings: fixed sines and cosines, or learned",
        paper="sinusoidal; learned in row E of Table 3",
    )
    tied_embeddings: Literal["none", "target", "all"] = setting(
        "all",
        "embedding matrices that share their weights with the output projection: those of the source and "
        "the target, that of the target, or none",
        paper="all",
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
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ConfigError(f"d_model must be even, a sine and a cosine for each frequency; got {self.d_model}")
        if self.d_model % self.heads and None in (self.d_k, self.d_v):
            raise ConfigError(
                "d_model must be a multiple of heads, or d_k and d_v be given; "
                f"got {self.describe_values('d_model', 'heads')}"
            )
        if self.tied_embeddings == "all" and self.effective_target_vocab_size != self.vocab_size:
            raise ConfigError(
                f'tied_embeddings="all" needs one vocabulary; got {self.vocab_size} ids for the source '
                f"and {self.effective_target_vocab_size} for the target"
            )

    @property
    def effective_target_pad_id(self) -> int:
        """The id that fills up target sequences."""
        return self.pad_id if self.target_pad_id is None else self.target_pad_id

    @property
    def effective_target_vocab_size(self) -> int:
        """How many ids the target side has."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size

    @property
    def weight_bytes(self) -> int:
        """Bytes of its matrices in float32: tables of both sides and of positions, attentions, feed-forward layers."""
        tables = self.d_model * (self.vocab_size + self.effective_target_vocab_size + 2 * self.max_length)
        d_k, d_v = (width or self.d_model // self.heads for width in (self.d_k, self.d_v))
        attention, feed_forward = 2 * self.d_model * self.heads * (d_k + d_v), 2 * self.d_model * self.d_ff
        layers = (self.encoder_layers + 2 * self.decoder_layers) * attention
        return 4 * (tables + layers + (self.encoder_layers + self.decoder_layers) * feed_forward)


_COLUMNS = "source and target: names or numbers of columns, or two languages"


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig(Checked):
    """One corpus of several, `[[data.corpus]]`.

    A part names one file that holds both sides, `"pairs.tsv"`, or two aligned files, `["a.en", "a.it"]`.
    """

    train: str | tuple[str, ...] = setting((), "training pairs")
    valid: str | tuple[str, ...] = setting((), "validation pairs")
    test: str | tuple[str, ...] = setting((), "test pairs")
    columns: tuple[str, ...] = setting((), _COLUMNS)
    weight: float = setting(
        1.0,
        "how many times an epoch contains the training pairs; 0.5: half of them",
        Range(more_than=0, at_most=10_000),
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in ("train", "valid", "test"):
            where = getattr(self, name)
            if isinstance(where, tuple) and len(where) not in (0, 2):
                raise ConfigError(f"{name} must name a file of pairs or two files, [source, target]; got {list(where)}")
        if len(self.columns) not in (0, 2):
            raise ConfigError(f"columns must name two, [source, target]; got {list(self.columns)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(Checked):
    """Which pairs to learn from, and how they become ids; docs/data.md has examples."""

    train: str | tuple[str, ...] = setting(
        (), 'training pairs: one file, two aligned files [source, target], or a task such as "dates:train"'
    )
    valid: str | tuple[str, ...] = setting((), "validation pairs, in the same forms; without any, held_out decides")
    test: str | tuple[str, ...] = setting((), "test pairs, in the same forms")
    columns: tuple[str, ...] = setting((), _COLUMNS)
    corpus: tuple[CorpusConfig, ...] = setting((), "further corpora, each with its weight: [[data.corpus]]")
    data_dir: str = setting("", "folder that relative paths of pairs start from")
    cache_dir: str = setting(
        "", "folder for the encoded pairs, which several runs can share; empty: the folder of the run"
    )
    max_train_samples: int = setting(0, "number of training pairs to draw at random; 0: all", COUNT_OR_NONE)
    max_valid_samples: int = setting(0, "number of validation pairs to draw at random; 0: all", COUNT_OR_NONE)
    held_out: float = setting(
        0.02,
        "fraction of the training pairs to use as validation pairs if there are none, and as many again as "
        "test pairs; 0: none",
        Range(at_least=0, at_most=0.4),
    )
    max_malformed: float = setting(
        0.01,
        "largest fraction of a file's pairs that may be malformed and skipped; beyond it the file is refused",
        SHARE,
    )
    seed: int = setting(
        1, "seed of the held-out split and of the draw of max_train_samples and max_valid_samples", SEED
    )
    vocabulary: Literal["bpe", "unigram", "words", "characters", "codes"] = setting(
        "bpe",
        "kind of tokens: learned subwords (bpe, unigram), words, characters, or the subwords of bpe_codes",
        paper="byte-pair encoding; word pieces for English–French",
    )
    vocab_size: int = setting(
        0,
        "tokens to learn; 0: chosen from the number of pairs",
        Range(at_least=0, at_most=2**24),
        paper="about 37,000; English–French: 32,000",
    )
    joint_vocabulary: bool = setting(True, "one vocabulary for source and target instead of two", paper="true")
    alphabet: str = setting("", 'characters of vocabulary "characters"; empty: those of the training pairs')
    byte_fallback: bool = setting(
        False, 'vocabulary "characters" encodes unknown characters as bytes; "bpe" and "unigram" always do'
    )
    bpe_codes: str = setting(
        "", 'merges of vocabulary "codes": a file of subword-nmt, for text that is tokenized already'
    )
    subword_sampling: float = setting(
        0.0,
        "subword regularization: segment each pair differently in every epoch; the fraction of merges that "
        "BPE-dropout skips, or the smoothing parameter of unigram; 0: off",
        SHARE,
    )

    def __post_init__(self) -> None:
        if isinstance(self.corpus, list | tuple):
            several = (
                table if isinstance(table, CorpusConfig) else build_settings(CorpusConfig, table, where="corpus")
                for table in self.corpus
            )
            object.__setattr__(self, "corpus", tuple(several))
        Checked.__post_init__(self)
        self.corpora()
        for key in ("alphabet", "byte_fallback"):
            if getattr(self, key) and self.vocabulary != "characters":
                raise ConfigError(
                    f'{key} goes with vocabulary = "characters"; got {self.describe_values(key, "vocabulary")}'
                )
        if bool(self.bpe_codes) != (self.vocabulary == "codes"):
            raise ConfigError(
                'bpe_codes, a file of merges, goes with vocabulary = "codes"; '
                f"got {self.describe_values('vocabulary', 'bpe_codes')}"
            )
        if self.bpe_codes and not self.joint_vocabulary:
            raise ConfigError(
                "bpe_codes are one vocabulary for both sides; "
                f"got {self.describe_values('bpe_codes', 'joint_vocabulary')}"
            )
        if self.subword_sampling and self.vocabulary not in ("bpe", "unigram", "codes"):
            raise ConfigError(
                'subword_sampling goes with vocabulary = "bpe", "unigram" or "codes"; '
                f"got {self.describe_values('subword_sampling', 'vocabulary')}"
            )

    def corpora(self) -> tuple[CorpusConfig, ...]:
        """Every corpus there is: the one named first, then those of `corpus`."""
        first = CorpusConfig(train=self.train, valid=self.valid, test=self.test, columns=self.columns)
        return (first, *self.corpus) if first.train or first.valid or first.test else self.corpus


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig(Checked):
    """What is mended in a pair, and which pairs are dropped; docs/data.md has the reasons. Lengths in characters."""

    unicode: Literal["NFC", "NFKC", "none"] = setting("NFC", "Unicode normalization of every text")
    strip_control: bool = setting(True, "replace tabs and line breaks by spaces, and remove other control characters")
    max_chars: int = setting(
        5_000, "drop pairs with a side longer than this, in characters; 0: keep them", COUNT_OR_NONE
    )
    max_length_ratio: float = setting(
        5.0,
        "drop pairs if one side is longer than the other by more than this factor, 20 characters added to "
        "both; 0: keep them",
        Range(at_least=0, at_most=1_000_000),
    )
    drop_copies: int = setting(
        4, "drop pairs with equal sides of at least this many words; 0: keep them", COUNT_OR_NONE
    )
    deduplicate: bool = setting(True, "keep only the first of several equal pairs")
    overlap: Literal["either", "source", "target", "none"] = setting(
        "either",
        "drop training pairs that also occur in the validation or test pairs: with either side, with the "
        "source or with the target",
    )
    max_dropped: float = setting(
        0.5,
        "largest fraction of the pairs that one of these filters may drop; a filter that would drop more is "
        "not applied, and a message says so",
        Range(more_than=0, at_most=1),
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if 0 < self.max_length_ratio <= 1:
            raise ConfigError(f"max_length_ratio must be 0 (any) or more than 1; got {self.max_length_ratio}")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Checked):
    """How long, how fast and how carefully to train (§5). Lengths in tokens, rates per update."""

    steps: int = setting(100_000, "updates of the weights", COUNT, paper="100,000; big: 300,000")
    optimizer: Literal["adam", "adamw", "muon"] = setting(
        "adam", "muon: Muon for the matrices inside the layers, and Adam for the other weights", paper="adam, β₂ 0.98"
    )
    weight_decay: float = setting(
        0.0,
        'decoupled weight decay of "adamw", and of the matrices of "muon"; the learning rate multiplies it',
        Range(at_least=0, at_most=1_000),
    )
    precision: Literal["float32", "bfloat16", "auto"] = setting(
        "float32", "number type of matrix products; auto: the faster one on this machine"
    )
    batch_tokens: int = setting(
        25_000,
        "maximum source tokens and maximum target tokens of a batch, padding included",
        COUNT,
        paper="about 25,000 of each",
    )
    schedule: Literal["paper", "inverse-sqrt", "cosine", "constant"] = setting(
        "paper",
        "how the learning rate changes after the warmup; paper: with the inverse square root of the step",
        paper="paper",
    )
    warmup: int = setting(
        4_000, "updates over which the learning rate rises linearly to its peak", COUNT, paper="4,000"
    )
    learning_rate: float = setting(
        0.0,
        'peak learning rate, at the end of the warmup; 0, only with schedule "paper": the paper\'s peak, '
        "(d_model · warmup)^-0.5",
        Range(at_least=0, at_most=1_000),
        paper="0.0007 for base",
    )
    cooldown: int = setting(
        0, "last updates, over which the learning rate falls linearly to zero; 0: none", COUNT_OR_NONE, paper="0"
    )
    label_smoothing: float = setting(
        0.1, "label smoothing: the probability that the target distribution spreads over all tokens", SHARE, paper="0.1"
    )
    r_drop: float = setting(
        0.0,
        "R-Drop: weight of the symmetric KL divergence between two passes with different dropout; 0: one pass",
        Range(at_least=0, at_most=1_000),
    )
    clip_norm: float = setting(
        0.0,
        "maximum norm of the gradient; a larger gradient is scaled down; 0: no limit",
        Range(at_least=0, at_most=1_000_000),
    )
    accumulate_steps: int = setting(1, "batches whose gradients are accumulated for one update", COUNT)
    validate_every: int = setting(
        1_000, "updates between two validations; each writes a checkpoint", COUNT, paper="a checkpoint every 10 minutes"
    )
    average_checkpoints: int = setting(
        5, "checkpoints at the end of training whose mean becomes the model", COUNT, paper="5; big: 20"
    )
    ema_decay: float = setting(
        0.0, "decay of an exponential moving average of the weights, which becomes the model; 0: off", SHARE
    )
    patience: int = setting(
        0,
        "early stopping: end the run after this many validations in which early_stopping_metric improves by "
        "less than 0.1 %, and keep the best weights; 0: off",
        COUNT_OR_NONE,
    )
    early_stopping_metric: Literal["loss", "bleu", "chrf", "exact"] = setting(
        "loss", "validation metric that early stopping uses"
    )
    validate_samples: int = setting(
        500, "validation pairs to translate at each validation, for BLEU and chrF; 0: none", COUNT_OR_NONE
    )
    init_from: str = setting(
        "", "folder of a bundle whose weights and vocabulary the run starts with; empty: random weights"
    )
    tensorboard: bool = setting(True, "write TensorBoard files too, if TensorBoard is installed")
    seed: int = setting(1, "seed of the initial weights, the order of the pairs, and dropout", SEED)
    threads: int = setting(0, "CPU threads; 0: one for each core", Range(at_least=0, at_most=1_024))
    device: str = setting("auto", "auto, cpu, cuda or mps", paper="8 P100 GPUs")

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if not self.learning_rate and self.schedule != "paper":
            raise ConfigError(
                'learning_rate must be more than 0, but for schedule = "paper", which has its own; '
                f"got {self.describe_values('learning_rate', 'schedule')}"
            )
        if self.cooldown and self.schedule == "cosine":
            raise ConfigError(f'schedule = "cosine" falls to zero by itself; got cooldown={self.cooldown}')
        if self.weight_decay and self.optimizer == "adam":
            raise ConfigError(
                'weight_decay goes with optimizer = "adamw" or "muon"; '
                f"got {self.describe_values('weight_decay', 'optimizer')}"
            )
        if self.ema_decay and self.average_checkpoints > 1:
            raise ConfigError(
                "ema_decay and average_checkpoints both average the weights; with ema_decay set average_checkpoints=1; "
                f"got {self.describe_values('ema_decay', 'average_checkpoints')}"
            )


Span = Literal["urls", "emails", "tags", "placeholders", "numbers"]
SPANS: tuple[str, ...] = get_args(Span)


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeConfig(Checked):
    """How to search for a translation (§6.1); docs/decoding.md says more of each.

    Lengths in tokens; those of an output count its end token, those of an input no special tokens.
    """

    beam: int = setting(
        4, "beam size: hypotheses kept at each step; 1: greedy search", Range(at_least=1, at_most=10_000), paper="4"
    )
    alpha: float = setting(
        0.6,
        "exponent of the length penalty; higher values favour longer translations",
        Range(at_least=0, at_most=10),
        paper="0.6",
    )
    length_penalty: Literal["gnmt", "plain"] = setting(
        "gnmt", "length penalty: ((5 + length) / 6)^alpha of Wu et al. (gnmt), or length^alpha (plain)", paper="gnmt"
    )
    patience: float = setting(
        1.0,
        "finish a sentence once beam · patience hypotheses are finished and no active one can still be better",
        Range(more_than=0, at_most=1_000),
    )
    nbest: int = setting(1, "translations of each sentence, best first", Range(at_least=1, at_most=10_000), paper="1")
    beam_groups: int = setting(1, "diverse beam search: groups that the beam is divided into; 1: off", COUNT)
    diversity_penalty: float = setting(
        0.5,
        "diverse beam search: penalty, in nats, for a token that another group has chosen at this step",
        Range(at_least=0, at_most=1_000),
    )
    extra_length: int = setting(
        50, "maximum output length beyond length_ratio times the input length, in tokens", COUNT, paper="50"
    )
    length_ratio: float = setting(
        1.0,
        "maximum output length as a multiple of the input length, plus extra_length",
        Range(at_least=0, at_most=1_000),
        paper="1",
    )
    max_length: int = setting(0, "maximum output length in tokens; 0: the max_length of the model", COUNT_OR_NONE)
    min_length: int = setting(0, "minimum output length in tokens", COUNT_OR_NONE)
    min_ratio: float = setting(
        0.0, "minimum output length as a multiple of the input length", Range(at_least=0, at_most=1_000)
    )
    no_repeat_ngram_size: int = setting(
        0, "no n-gram of this many tokens occurs twice in an output; 0: off", COUNT_OR_NONE
    )
    repetition_penalty: float = setting(
        1.0,
        "penalty of tokens that the output already contains: above 1 they become less likely; 1: off",
        Range(more_than=0, at_most=1_000),
    )
    sample: bool = setting(False, "sample each token at random instead of searching")
    temperature: float = setting(
        1.0,
        "sampling: divisor of the logits; below 1 likely tokens become more likely",
        Range(at_least=0.001, at_most=1_000),
    )
    top_k: int = setting(0, "sampling: only from this many of the most likely tokens; 0: from all", COUNT_OR_NONE)
    top_p: float = setting(
        1.0,
        "sampling: only from the smallest set of tokens with at least this total probability",
        Range(more_than=0, at_most=1),
    )
    seed: int = setting(1, "sampling: random seed", SEED)
    copy_spans: tuple[Span, ...] = setting((), "kinds of spans to copy unchanged into the translation")
    replace_unknown: bool = setting(
        False, "replace an unknown token in the output by the source word that it attends to most"
    )
    copy_untranslatable: bool = setting(
        True, "copy a text that has nothing to translate, such as a number, if the training pairs do so"
    )
    retry_repetition: bool = setting(True, "translate again if an output is repetitive, then without repeated n-grams")
    batch_size: int = setting(64, "sentences decoded together", COUNT)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.nbest > self.beam and not self.sample:
            raise ConfigError(
                f"a beam holds no more than beam translations; got {self.describe_values('nbest', 'beam')}"
            )
        if self.beam % self.beam_groups:
            raise ConfigError(
                f"beam must be a multiple of beam_groups; got {self.describe_values('beam', 'beam_groups')}"
            )
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(
                f"min_length must be at most max_length; got {self.describe_values('min_length', 'max_length')}"
            )


def read_recipe(path: str | Path) -> dict[str, Any]:
    """The tables of a recipe's TOML file, with the names of version 0.1 replaced by those of today."""
    return upgrade_recipe(read_tables(path))


def _full_names(sections: Mapping[str, Any]) -> dict[str, str]:
    """Every key with the tables that have it: "train.seed or decode.seed"."""
    names: dict[str, list[str]] = {}
    for section, kind in sections.items():
        for known in dataclasses.fields(kind):
            if section != "model" or known.name not in FROM_VOCABULARY:
                names.setdefault(known.name, []).append(f"{section}.{known.name}")
    return {key: " or ".join(full) for key, full in names.items()}


# What the vocabulary decides is no setting of a recipe.
FROM_VOCABULARY = ("vocab_size", "target_vocab_size", "pad_id", "target_pad_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe(Checked):
    """One whole run as data. `model` has its vocabulary's sizes only once that is learned."""

    data: DataConfig = field(default_factory=DataConfig)
    clean: CleanConfig = field(default_factory=CleanConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)

    @classmethod
    def read(cls, path: str | Path, overrides: Iterable[str] = ()) -> Self:
        """A recipe from a TOML file, with `section.key=value` overrides. Lists known keys when refusing one."""
        return cls.from_tables(apply_overrides(read_recipe(path), overrides))

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> Self:
        """A recipe from the tables of a TOML file."""
        sections: dict[str, Any] = {section.name: section.type for section in dataclasses.fields(cls)}
        elsewhere = _full_names(sections)
        refuse_unknown(tables, sections, where="the recipe", elsewhere=elsewhere)
        model = tables.get("model")
        for key in FROM_VOCABULARY:
            if isinstance(model, Mapping) and key in model:
                raise ConfigError(f"model.{key} follows from the vocabulary; set data.vocab_size instead")
        return cls(
            **{
                name: build_settings(sections[name], table, where=f"[{name}]", elsewhere=elsewhere)
                for name, table in tables.items()
            }
        )

    def tables(self) -> dict[str, dict[str, Any]]:
        """This recipe as the tables of a TOML file: `Recipe.from_tables(recipe.tables())` equals it."""
        tables = dataclasses.asdict(self)
        for name in FROM_VOCABULARY:
            del tables["model"][name]
        return {
            section: {key: value for key, value in table.items() if value is not None}
            for section, table in tables.items()
        }
