"""Every setting there is.

A recipe is a TOML file of five tables, `[data] [clean] [model] [train] [decode]`, whose keys are the fields
below. `section.key=value` on a command line overrides one of them.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_type_hints

from .errors import ConfigError
from .settings import Checked, overridden, read_tables, refuse_unknown, require_share, require_whole, settings


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Checked):
    """The sizes of one Transformer; the defaults are Table 3's `base`. Lengths in tokens."""

    vocab_size: int = 37_000
    target_vocab_size: int | None = None  # None: the same as vocab_size
    pad_id: int = 0
    d_model: int = 512
    d_ff: int = 2048
    heads: int = 8
    d_k: int | None = None  # None: d_model / heads
    d_v: int | None = None  # None: d_model / heads
    encoder_layers: int = 6
    decoder_layers: int = 6
    activation: Literal["relu", "gelu", "silu"] = "relu"
    norm: Literal["post", "pre"] = "post"
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    share: Literal["none", "target", "all"] = "all"  # which tables are one with the projection's, §3.4
    max_length: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.0  # on the weights of attention; the paper's text has none

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in (
            "vocab_size",
            "d_model",
            "d_ff",
            "heads",
            "encoder_layers",
            "decoder_layers",
            "max_length",
        ):
            require_whole(name, getattr(self, name))
        for name in ("target_vocab_size", "d_k", "d_v"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name))
        require_whole("pad_id", self.pad_id, least=0)
        require_share("dropout", self.dropout)
        require_share("attention_dropout", self.attention_dropout)
        if self.pad_id >= min(self.vocab_size, self.vocab_size_of_target):
            raise ConfigError(f"pad_id must be an id of the vocabulary of {self.vocab_size}; got {self.pad_id}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ConfigError(f"d_model must be even, a sine and a cosine for each frequency; got {self.d_model}")
        if self.d_model % self.heads and None in (self.d_k, self.d_v):
            raise ConfigError(
                f"d_model must be a multiple of heads, or d_k and d_v be given; "
                f"got d_model={self.d_model}, heads={self.heads}"
            )
        if self.share == "all" and self.vocab_size_of_target != self.vocab_size:
            raise ConfigError(
                f'share="all" needs one vocabulary; got {self.vocab_size} ids for the source '
                f"and {self.vocab_size_of_target} for the target"
            )

    @property
    def vocab_size_of_target(self) -> int:
        """How many ids the target side has."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig(Checked):
    """One corpus of several, `[[data.corpus]]`.

    A part names one file that holds both sides, `"pairs.tsv"`, or two aligned files, `["a.en", "a.it"]`.
    """

    train: str | tuple[str, ...] = ()
    valid: str | tuple[str, ...] = ()
    test: str | tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # source and target: names or numbers of columns, or two languages
    weight: float = 1.0  # how often an epoch shows its pairs

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in ("train", "valid", "test"):
            where = getattr(self, name)
            if isinstance(where, tuple) and len(where) not in (0, 2):
                raise ConfigError(f"{name} must name a file of pairs or two files, [source, target]; got {list(where)}")
        if len(self.columns) not in (0, 2):
            raise ConfigError(f"columns must name two, [source, target]; got {list(self.columns)}")
        if self.weight <= 0:
            raise ConfigError(f"weight must be more than 0; got {self.weight}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(Checked):
    """Which pairs to learn from, and how they become ids; docs/data.md has examples."""

    train: str | tuple[str, ...] = ()  # a file of pairs, two aligned files [source, target], or "dates:train"
    valid: str | tuple[str, ...] = ()  # without any, a share of train is held out
    test: str | tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # source and target: names or numbers of columns, or two languages
    corpus: tuple[CorpusConfig, ...] = ()  # more of them, each with its weight
    folder: str = ""  # goes before the paths above
    store: str = ""  # where encoded pairs are kept, for several runs to use; empty: in the run's folder
    limit: int = 0  # draw this many training pairs; 0: all
    valid_limit: int = 0
    held_out: float = 0.02  # of the pairs, for validation; as many again for a test; 0: train on all
    malformed: float = 0.01  # skip at most this share of a file
    seed: int = 1  # of the split and of what `limit` draws
    vocabulary: Literal["bpe", "unigram", "words", "characters", "codes"] = "bpe"
    vocab_size: int = 0  # 0: from the number of pairs
    joint: bool = True  # one vocabulary for both sides
    alphabet: str = ""  # of "characters"; empty: those of the training pairs
    byte_fallback: bool = False  # "characters" too spells what it lacks in bytes; "bpe" and "unigram" always do
    codes: str = ""  # of "codes": a file of merges as subword-nmt writes it, for text whose words stand apart
    sampling: float = 0.0  # segment anew in every epoch: BPE-dropout's share of merges, or unigram's temperature

    def __post_init__(self) -> None:
        if isinstance(self.corpus, list | tuple):
            several = (
                table if isinstance(table, CorpusConfig) else settings(CorpusConfig, table, where="corpus")
                for table in self.corpus
            )
            object.__setattr__(self, "corpus", tuple(several))
        Checked.__post_init__(self)
        for name in ("limit", "valid_limit", "seed", "vocab_size"):
            require_whole(name, getattr(self, name), least=0)
        for name in ("malformed", "sampling"):
            require_share(name, getattr(self, name))
        if not 0 <= self.held_out <= 0.4:
            raise ConfigError(f"held_out must be at least 0 and at most 0.4; got {self.held_out}")
        self.corpora()
        for key, vocabulary in (("alphabet", "characters"), ("byte_fallback", "characters")):
            if getattr(self, key) and self.vocabulary != vocabulary:
                raise ConfigError(f'{key} goes with vocabulary = "{vocabulary}"; got vocabulary={self.vocabulary!r}')
        if bool(self.codes) != (self.vocabulary == "codes"):
            raise ConfigError(
                f'codes, a file of merges, goes with vocabulary = "codes"; '
                f"got vocabulary={self.vocabulary!r}, codes={self.codes!r}"
            )
        if self.codes and not self.joint:
            raise ConfigError("codes are one vocabulary for both sides; got joint=False")
        if self.sampling and self.vocabulary not in ("bpe", "unigram", "codes"):
            raise ConfigError(
                f'sampling goes with vocabulary = "bpe", "unigram" or "codes"; got vocabulary={self.vocabulary!r}'
            )

    def corpora(self) -> tuple[CorpusConfig, ...]:
        """Every corpus there is: the one named first, then those of `corpus`."""
        first = CorpusConfig(train=self.train, valid=self.valid, test=self.test, columns=self.columns)
        return (first, *self.corpus) if first.train or first.valid or first.test else self.corpus


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig(Checked):
    """What is mended in a pair, and which pairs are dropped; docs/data.md has the reasons. Lengths in characters."""

    unicode: Literal["NFC", "NFKC", "none"] = "NFC"
    control: bool = True  # a tab or a line's end becomes a blank, other control characters go
    longest: int = 5_000  # on a side; 0: any
    ratio: float = 5.0  # of the sides' lengths, 20 added to each; 0: any
    copies: int = 4  # drop sides that are equal and have this many words or more; 0: keep
    duplicates: bool = True  # drop all but the first of equal pairs
    overlap: Literal["either", "source", "target", "none"] = "either"  # drop what also stands in valid or test
    most: float = 0.5  # a rule that would drop more of the pairs than this is left out, and told

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in ("longest", "copies"):
            require_whole(name, getattr(self, name), least=0)
        if self.ratio and self.ratio <= 1:
            raise ConfigError(f"ratio must be 0 (any) or more than 1; got {self.ratio}")
        if not 0 < self.most <= 1:
            raise ConfigError(f"most must be more than 0 and at most 1; got {self.most}")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Checked):
    """How long, how fast and how carefully to train (§5). Lengths in tokens, rates per update."""

    steps: int = 100_000  # updates
    optimizer: Literal["adam", "adamw", "muon"] = "adam"  # muon: for the matrices inside the layers, adam for the rest
    weight_decay: float = 0.0  # of "adamw" and of the matrices of "muon", times the rate
    precision: Literal["float32", "bfloat16", "auto"] = "float32"  # of the products; auto: whichever is faster here
    batch_tokens: int = 25_000  # of source and of target, padding included, at most (§5.1)
    schedule: Literal["paper", "inverse-sqrt", "cosine", "constant"] = "paper"  # of the rate, after the warm-up
    warmup: int = 4_000  # updates
    rate: float = 1.0  # of schedule "paper": times the paper's rate; of the others: the highest rate itself
    cooldown: int = 0  # updates at the end over which the rate falls to zero
    label_smoothing: float = 0.1  # share of the target spread over all words (§5.4)
    r_drop: float = 0.0  # go through each batch twice and weigh how far the two differ; 0: go once
    clip_norm: float = 0.0  # scale gradients down to this norm; 0: never
    accumulate: int = 1  # batches that make one update
    pause: int = 1_000  # updates between validations, each with a checkpoint
    average: int = 5  # pauses at the end whose mean becomes the model (§6.1)
    ema: float = 0.0  # the model is a running mean that keeps this share of itself at each update; 0: off
    patience: int = 0  # end after this many pauses without a better `stop_on`, and keep the best; 0: keep the last
    stop_on: Literal["loss", "bleu", "chrf", "exact"] = "loss"  # of the validation pairs
    judged: int = 500  # validation pairs translated at each pause for BLEU and chrF; 0: none
    start: str = ""  # a bundle whose weights and vocabulary to begin with
    tensorboard: bool = True  # write its files too, when it is installed
    seed: int = 1  # of the first weights, the order of the pairs, and dropout
    threads: int = 0  # 0: one for each core
    device: str = "auto"  # "auto", "cpu", "cuda" or "mps"

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in ("steps", "batch_tokens", "warmup", "accumulate", "pause", "average"):
            require_whole(name, getattr(self, name))
        for name in ("cooldown", "patience", "judged", "seed", "threads"):
            require_whole(name, getattr(self, name), least=0)
        require_share("label_smoothing", self.label_smoothing)
        if self.cooldown and self.schedule == "cosine":
            raise ConfigError(f'schedule = "cosine" falls to zero by itself; got cooldown={self.cooldown}')
        if self.weight_decay < 0:
            raise ConfigError(f"weight_decay must be 0 (off) or more; got {self.weight_decay}")
        if self.weight_decay and self.optimizer == "adam":
            raise ConfigError(
                f'weight_decay goes with optimizer = "adamw" or "muon"; got {self.weight_decay} with "adam"'
            )
        require_share("ema", self.ema)
        if self.ema and self.average > 1:
            raise ConfigError(
                f"ema and average both make the model a mean; set average=1 with ema={self.ema}, got {self.average}"
            )
        if self.rate <= 0:
            raise ConfigError(f"rate must be more than 0; got {self.rate}")
        if self.r_drop < 0:
            raise ConfigError(f"r_drop must be 0 (off) or more; got {self.r_drop}")
        if self.clip_norm < 0:
            raise ConfigError(f"clip_norm must be 0 (off) or more; got {self.clip_norm}")


SPANS = ("urls", "emails", "tags", "placeholders", "numbers")


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeConfig(Checked):
    """How to look for a translation (§6.1). Lengths in tokens; docs/decoding.md says more of each."""

    beam: int = 4  # 1: greedy
    alpha: float = 0.6  # exponent of the length penalty
    penalty: Literal["gnmt", "plain"] = "gnmt"  # ((5 + |Y|)/6)^alpha, Wu et al. (2016), or |Y|^alpha
    patience: float = 1.0  # wait for beam · patience hypotheses to end, and for any that are still better
    nbest: int = 1  # how many translations of each sentence
    groups: int = 1  # diverse beam: parts of the beam that keep away from each other
    diversity: float = 0.5  # diverse beam: what it costs to say what another group says, in nats
    extra_length: int = 50  # an output may have this many tokens more than length_ratio times its input
    length_ratio: float = 1.0
    max_length: int = 0  # and no more than this; 0: the model's max_length
    min_length: int = 0  # an output has at least this many tokens,
    min_ratio: float = 0.0  # and this many times those of its input
    no_repeat: int = 0  # no run of this many tokens stands twice in a sentence; 0: it may
    repetition_penalty: float = 1.0  # more than 1: words already said become less likely
    sample: bool = False  # draw by chance instead of searching
    temperature: float = 1.0  # sampling: less than 1 is careful, more is bold
    top_k: int = 0  # sampling: from so many of the likeliest words; 0: all
    top_p: float = 1.0  # sampling: from the fewest words that together have this probability
    seed: int = 1  # sampling
    keep: tuple[str, ...] = ()  # kinds of spans copied untouched: urls, emails, tags, placeholders, numbers
    replace_unknown: bool = False  # write the source's word where the vocabulary lacks the target's
    guard: bool = True  # copy what the training data copied, decode again what goes round in circles
    batch: int = 64  # sentences at once

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name in ("beam", "nbest", "groups", "extra_length", "batch"):
            require_whole(name, getattr(self, name))
        for name in ("max_length", "min_length", "no_repeat", "top_k", "seed"):
            require_whole(name, getattr(self, name), least=0)
        for name in ("alpha", "diversity", "length_ratio", "min_ratio"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be 0 or more; got {getattr(self, name)}")
        for name in ("patience", "repetition_penalty", "temperature"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be more than 0; got {getattr(self, name)}")
        for kind in self.keep:
            if kind not in SPANS:
                raise ConfigError(f"keep names kinds of spans ({', '.join(SPANS)}); got {kind!r}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p must be more than 0 and at most 1; got {self.top_p}")
        if self.nbest > self.beam and not self.sample:
            raise ConfigError(f"a beam holds no more than beam translations; got nbest={self.nbest}, beam={self.beam}")
        if self.beam % self.groups:
            raise ConfigError(f"beam must be a multiple of groups; got beam={self.beam}, groups={self.groups}")
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(
                f"min_length must be at most max_length; got min_length={self.min_length}, max_length={self.max_length}"
            )


# What the vocabulary decides is no setting of a recipe.
_FROM_VOCABULARY = ("vocab_size", "target_vocab_size", "pad_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe(Checked):
    """One whole run as data. `model` has its vocabulary's sizes only once that is learned."""

    data: DataConfig = field(default_factory=DataConfig)
    clean: CleanConfig = field(default_factory=CleanConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)

    @classmethod
    def read(cls, path: Path, overrides: Iterable[str] = ()) -> Self:
        """A recipe from a TOML file, with `section.key=value` overrides. Lists known keys when refusing one."""
        return cls.of(overridden(read_tables(path), overrides))

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Self:
        """A recipe from the tables of a TOML file."""
        sections = get_type_hints(cls)
        refuse_unknown(tables, sections, where="the recipe")
        model = tables.get("model")
        for key in _FROM_VOCABULARY:
            if isinstance(model, Mapping) and key in model:
                raise ConfigError(f"model.{key} follows from the vocabulary; set data.vocab_size instead")
        return cls(**{name: settings(sections[name], table, where=f"[{name}]") for name, table in tables.items()})

    def tables(self) -> dict[str, dict[str, Any]]:
        """This recipe as the tables of a TOML file: `Recipe.of(recipe.tables())` equals it."""
        tables = dataclasses.asdict(self)
        for name in _FROM_VOCABULARY:
            del tables["model"][name]
        return {
            section: {key: value for key, value in table.items() if value is not None}
            for section, table in tables.items()
        }
