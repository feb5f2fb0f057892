"""Every setting there is.

A recipe is a TOML file of five tables, `[data] [clean] [model] [train] [decode]`, whose keys are the fields
below. `section.key=value` on a command line overrides one of them. `dataclasses.fields` of a section tell all about
its settings: type, default, and in the metadata `help` and `range`.
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

# Sizes beyond these are mistakes: one table of them would fill the memory of any machine.
_WIDTH = Range(at_least=1, at_most=2**16)
_DEPTH = Range(at_least=1, at_most=1_000)
_VOCABULARY = Range(at_least=1, at_most=2**24)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Checked):
    """The sizes of one Transformer; the defaults are Table 3's `base`. Lengths in tokens."""

    vocab_size: int = setting(37_000, "ids of the vocabulary, or of the source's", _VOCABULARY)
    target_vocab_size: int | None = setting(None, "ids of the target's vocabulary; none: the same", _VOCABULARY)
    pad_id: int = setting(0, "the padding id of the vocabulary, or of the source's", COUNT_OR_NONE)
    target_pad_id: int | None = setting(None, "the padding id of the target's vocabulary; none: pad_id", COUNT_OR_NONE)
    d_model: int = setting(512, "width of the vectors between the layers", _WIDTH)
    d_ff: int = setting(2048, "width inside the feed-forward layers", Range(at_least=1, at_most=2**18))
    heads: int = setting(8, "heads of each attention", _WIDTH)
    d_k: int | None = setting(None, "width of a head's queries and keys; none: d_model / heads", _WIDTH)
    d_v: int | None = setting(None, "width of a head's values; none: d_model / heads", _WIDTH)
    encoder_layers: int = setting(6, "layers of the encoder", _DEPTH)
    decoder_layers: int = setting(6, "layers of the decoder", _DEPTH)
    activation: Literal["relu", "gelu", "silu"] = setting("relu", "between the two feed-forward maps")
    norm: Literal["post", "pre"] = setting("post", "normalise after each sublayer, as the paper does, or before it")
    positions: Literal["sinusoidal", "learned"] = setting("sinusoidal", "how a token's position is added (§3.5)")
    tied_embeddings: Literal["none", "target", "all"] = setting(
        "all", "which embeddings are one with the projection's (§3.4)"
    )
    max_length: int = setting(512, "longest sequence that it reads or writes", Range(at_least=1, at_most=2**20))
    dropout: float = setting(0.1, "share of each sublayer's output and of the embeddings set to zero (§5.4)", SHARE)
    attention_dropout: float = setting(0.0, "the same of the attention weights; the paper's text has none", SHARE)

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
                f"got {self.values_of('d_model', 'heads')}"
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

    train: str | tuple[str, ...] = setting((), "pairs to learn from")
    valid: str | tuple[str, ...] = setting((), "pairs to validate with")
    test: str | tuple[str, ...] = setting((), "pairs to test with")
    columns: tuple[str, ...] = setting((), _COLUMNS)
    weight: float = setting(1.0, "how often an epoch shows its pairs", Range(more_than=0, at_most=10_000))

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

    train: str | tuple[str, ...] = setting((), 'a file of pairs, two aligned files [source, target], or "dates:train"')
    valid: str | tuple[str, ...] = setting((), "the same; without any, a share of train is held out")
    test: str | tuple[str, ...] = setting((), "the same")
    columns: tuple[str, ...] = setting((), _COLUMNS)
    corpus: tuple[CorpusConfig, ...] = setting((), "more corpora, each with its weight")
    data_dir: str = setting("", "goes before the paths above")
    cache_dir: str = setting("", "where encoded pairs are kept, for several runs to use; empty: in the run's folder")
    max_train_samples: int = setting(0, "draw this many training pairs; 0: all", COUNT_OR_NONE)
    max_valid_samples: int = setting(0, "draw this many validation pairs; 0: all", COUNT_OR_NONE)
    held_out: float = setting(
        0.02, "share of the pairs for validation; as many again for a test; 0: none", Range(at_least=0, at_most=0.4)
    )
    max_malformed: float = setting(0.01, "skip at most this share of a file", SHARE)
    seed: int = setting(1, "of the split and of what max_train_samples draws", SEED)
    vocabulary: Literal["bpe", "unigram", "words", "characters", "codes"] = setting("bpe", "what a token is")
    vocab_size: int = setting(0, "tokens to learn; 0: from the number of pairs", Range(at_least=0, at_most=2**24))
    joint_vocabulary: bool = setting(True, "one vocabulary for both sides")
    alphabet: str = setting("", 'of "characters"; empty: those of the training pairs')
    byte_fallback: bool = setting(
        False, '"characters" too spells what it lacks in bytes; "bpe" and "unigram" always do'
    )
    bpe_codes: str = setting(
        "", 'of "codes": a file of merges as subword-nmt writes it, for text whose words stand apart'
    )
    subword_sampling: float = setting(
        0.0, "segment anew in every epoch: BPE-dropout's share of merges, or unigram's temperature", SHARE
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
                raise ConfigError(f'{key} goes with vocabulary = "characters"; got {self.values_of(key, "vocabulary")}')
        if bool(self.bpe_codes) != (self.vocabulary == "codes"):
            raise ConfigError(
                'bpe_codes, a file of merges, goes with vocabulary = "codes"; '
                f"got {self.values_of('vocabulary', 'bpe_codes')}"
            )
        if self.bpe_codes and not self.joint_vocabulary:
            raise ConfigError(
                f"bpe_codes are one vocabulary for both sides; got {self.values_of('bpe_codes', 'joint_vocabulary')}"
            )
        if self.subword_sampling and self.vocabulary not in ("bpe", "unigram", "codes"):
            raise ConfigError(
                'subword_sampling goes with vocabulary = "bpe", "unigram" or "codes"; '
                f"got {self.values_of('subword_sampling', 'vocabulary')}"
            )

    def corpora(self) -> tuple[CorpusConfig, ...]:
        """Every corpus there is: the one named first, then those of `corpus`."""
        first = CorpusConfig(train=self.train, valid=self.valid, test=self.test, columns=self.columns)
        return (first, *self.corpus) if first.train or first.valid or first.test else self.corpus


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig(Checked):
    """What is mended in a pair, and which pairs are dropped; docs/data.md has the reasons. Lengths in characters."""

    unicode: Literal["NFC", "NFKC", "none"] = setting("NFC", "the normal form that text is brought to")
    strip_control: bool = setting(True, "a tab or a line's end becomes a blank, other control characters go")
    max_chars: int = setting(5_000, "on a side; 0: any", COUNT_OR_NONE)
    max_length_ratio: float = setting(
        5.0, "of the sides' lengths, 20 added to each, more than 1; 0: any", Range(at_least=0, at_most=1_000_000)
    )
    drop_copies: int = setting(4, "drop sides that are equal and have this many words or more; 0: keep", COUNT_OR_NONE)
    deduplicate: bool = setting(True, "drop all but the first of equal pairs")
    overlap: Literal["either", "source", "target", "none"] = setting("either", "drop what also stands in valid or test")
    max_dropped: float = setting(
        0.5, "a rule that would drop more of the pairs than this is left out, and told", Range(more_than=0, at_most=1)
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if 0 < self.max_length_ratio <= 1:
            raise ConfigError(f"max_length_ratio must be 0 (any) or more than 1; got {self.max_length_ratio}")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Checked):
    """How long, how fast and how carefully to train (§5). Lengths in tokens, rates per update."""

    steps: int = setting(100_000, "updates", COUNT)
    optimizer: Literal["adam", "adamw", "muon"] = setting(
        "adam", "muon: for the matrices inside the layers, adam for the rest"
    )
    weight_decay: float = setting(
        0.0, 'of "adamw" and of the matrices of "muon", times the rate', Range(at_least=0, at_most=1_000)
    )
    precision: Literal["float32", "bfloat16", "auto"] = setting(
        "float32", "of the products; auto: whichever is faster here"
    )
    batch_tokens: int = setting(25_000, "of source and of target, padding included, at most (§5.1)", COUNT)
    schedule: Literal["paper", "inverse-sqrt", "cosine", "constant"] = setting(
        "paper", "of the rate, after the warm-up"
    )
    warmup: int = setting(4_000, "updates", COUNT)
    learning_rate: float = setting(
        0.0,
        'the peak, reached at the end of the warm-up; 0: the paper\'s, (d_model · warmup)^-0.5, with schedule "paper"',
        Range(at_least=0, at_most=1_000),
    )
    cooldown: int = setting(0, "updates at the end over which the rate falls to zero", COUNT_OR_NONE)
    label_smoothing: float = setting(0.1, "share of the target spread over all words (§5.4)", SHARE)
    r_drop: float = setting(
        0.0,
        "go through each batch twice and weigh how far the two differ; 0: go once",
        Range(at_least=0, at_most=1_000),
    )
    clip_norm: float = setting(0.0, "scale gradients down to this norm; 0: never", Range(at_least=0, at_most=1_000_000))
    accumulate_steps: int = setting(1, "batches that make one update", COUNT)
    validate_every: int = setting(1_000, "updates between validations, each with a checkpoint", COUNT)
    average_checkpoints: int = setting(5, "pauses at the end whose mean becomes the model (§6.1)", COUNT)
    ema_decay: float = setting(
        0.0, "the model is a running mean that keeps this share of itself at each update; 0: off", SHARE
    )
    patience: int = setting(
        0,
        "stop after this many validations without an early_stopping_metric better by 0.1 %, and keep the best; 0: off",
        COUNT_OR_NONE,
    )
    early_stopping_metric: Literal["loss", "bleu", "chrf", "exact"] = setting("loss", "of the validation pairs")
    validate_samples: int = setting(
        500, "validation pairs translated at each pause for BLEU and chrF; 0: none", COUNT_OR_NONE
    )
    init_from: str = setting("", "a bundle whose weights and vocabulary to begin with")
    tensorboard: bool = setting(True, "write its files too, when it is installed")
    seed: int = setting(1, "of the first weights, the order of the pairs, and dropout", SEED)
    threads: int = setting(0, "0: one for each core", Range(at_least=0, at_most=1_024))
    device: str = setting("auto", '"auto", "cpu", "cuda" or "mps"')

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if not self.learning_rate and self.schedule != "paper":
            raise ConfigError(
                'learning_rate must be more than 0, but for schedule = "paper", which has its own; '
                f"got {self.values_of('learning_rate', 'schedule')}"
            )
        if self.cooldown and self.schedule == "cosine":
            raise ConfigError(f'schedule = "cosine" falls to zero by itself; got cooldown={self.cooldown}')
        if self.weight_decay and self.optimizer == "adam":
            raise ConfigError(
                'weight_decay goes with optimizer = "adamw" or "muon"; '
                f"got {self.values_of('weight_decay', 'optimizer')}"
            )
        if self.ema_decay and self.average_checkpoints > 1:
            raise ConfigError(
                "ema_decay and average_checkpoints both average the weights; with ema_decay set average_checkpoints=1; "
                f"got {self.values_of('ema_decay', 'average_checkpoints')}"
            )


Span = Literal["urls", "emails", "tags", "placeholders", "numbers"]
SPANS: tuple[str, ...] = get_args(Span)


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeConfig(Checked):
    """How to search for a translation (§6.1); docs/decoding.md says more of each.

    Lengths in tokens; those of an output count its end token, those of an input no special tokens.
    """

    beam: int = setting(4, "hypotheses kept at each step; 1 is greedy search", Range(at_least=1, at_most=10_000))
    alpha: float = setting(
        0.6, "exponent of the length penalty; more favours longer outputs", Range(at_least=0, at_most=10)
    )
    length_penalty: Literal["gnmt", "plain"] = setting(
        "gnmt",
        "scores are log-probabilities divided by ((5 + length)/6)^alpha (gnmt, Wu et al. 2016) or length^alpha (plain)",
    )
    patience: float = setting(
        1.0,
        "a search ends once beam · patience hypotheses have ended and none still active scores better",
        Range(more_than=0, at_most=1_000),
    )
    nbest: int = setting(1, "translations of each sentence, best first", Range(at_least=1, at_most=10_000))
    beam_groups: int = setting(1, "diverse beam search: groups that the beam is split into", COUNT)
    diversity_penalty: float = setting(
        0.5,
        "diverse beam search: cost in nats of a token that another group has at the same position",
        Range(at_least=0, at_most=1_000),
    )
    extra_length: int = setting(
        50, "an output has at most this many tokens more than length_ratio times its input", COUNT
    )
    length_ratio: float = setting(
        1.0,
        "an output has at most extra_length tokens more than this many times its input",
        Range(at_least=0, at_most=1_000),
    )
    max_length: int = setting(0, "an output has at most this many tokens; 0: the model's max_length", COUNT_OR_NONE)
    min_length: int = setting(0, "an output has at least this many tokens", COUNT_OR_NONE)
    min_ratio: float = setting(
        0.0, "an output has at least this many times the tokens of its input", Range(at_least=0, at_most=1_000)
    )
    no_repeat_ngram_size: int = setting(
        0, "no n-gram of this many tokens occurs twice in an output; 0: any may", COUNT_OR_NONE
    )
    repetition_penalty: float = setting(
        1.0, "more than 1 makes tokens less likely that the output already has", Range(more_than=0, at_most=1_000)
    )
    sample: bool = setting(False, "draw tokens at random instead of searching for the most likely output")
    temperature: float = setting(
        1.0,
        "sampling: less than 1 favours likely tokens, more than 1 unlikely ones",
        Range(at_least=0.001, at_most=1_000),
    )
    top_k: int = setting(0, "sampling: draw only from this many most likely tokens; 0: from all", COUNT_OR_NONE)
    top_p: float = setting(
        1.0,
        "sampling: draw only from the fewest tokens whose probabilities sum to this",
        Range(more_than=0, at_most=1),
    )
    seed: int = setting(1, "sampling: the same seed draws the same tokens", SEED)
    copy_spans: tuple[Span, ...] = setting((), "kinds of spans that are copied unchanged")
    replace_unknown: bool = setting(False, "replace an unknown token by the source word that it attends to most")
    copy_untranslatable: bool = setting(True, "copy a text that has nothing to translate, if the training pairs did so")
    retry_repetition: bool = setting(True, "decode a repetitive output again, with repeated n-grams banned")
    batch_size: int = setting(64, "sentences translated together", COUNT)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.nbest > self.beam and not self.sample:
            raise ConfigError(f"a beam holds no more than beam translations; got {self.values_of('nbest', 'beam')}")
        if self.beam % self.beam_groups:
            raise ConfigError(f"beam must be a multiple of beam_groups; got {self.values_of('beam', 'beam_groups')}")
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(
                f"min_length must be at most max_length; got {self.values_of('min_length', 'max_length')}"
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
