"""The settings of `[data]`, `[[data.corpus]]` and `[clean]`: which pairs to learn from, and which to drop."""

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError
from .language_tags import require_language
from .settings import COUNT_OR_NONE, SEED, SHARE, Checked, Range, build_settings, format_value, setting

LICENSE_NAME = "[A-Za-z0-9.+-]{1,60}"  # model hubs read this in the header of a card
LEARNED_VOCABULARY = ("vocabulary", "source_vocabulary", "target_vocabulary", "vocab_size", "joint_vocabulary")
_PARTS = ("train", "valid", "test")
_COLUMNS = "source and target: names or numbers of columns, or two languages"


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig(Checked):
    """One of several corpora, `[[data.corpus]]`.

    Each of its parts is one file that holds both sides, `"pairs.tsv"`, or two aligned files, `["a.en", "a.it"]`.
    """

    train: str | tuple[str, ...] = setting((), "training pairs")
    valid: str | tuple[str, ...] = setting((), "validation pairs")
    test: str | tuple[str, ...] = setting((), "test pairs")
    columns: tuple[str, ...] = setting((), _COLUMNS)
    sheet: str = setting("", "sheet of a spreadsheet; empty: the first")
    weight: float = setting(
        1.0,
        "how many times an epoch contains the training pairs; 0.5: half of them",
        Range(more_than=0, at_most=10_000),
    )
    synthetic: bool = setting(
        False, "pairs that a program made, such as back-translations: none is held out for validation or test"
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        _unpack_single_files(self)
        for name in _PARTS:
            where = getattr(self, name)
            if isinstance(where, tuple) and len(where) not in (0, 2):
                raise ConfigError(f"{name} must name a file of pairs or two files, [source, target]; got {list(where)}")
        if len(self.columns) not in (0, 2) or len(set(self.columns)) != len(self.columns):
            raise ConfigError(f"columns must name two different columns, [source, target]; got {list(self.columns)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(Checked):
    """Which pairs to learn from, and how they are turned into ids. docs/data.md has examples."""

    train: str | tuple[str, ...] = setting(
        (), 'training pairs: one file, two aligned files [source, target], or a task such as "dates:train"'
    )
    valid: str | tuple[str, ...] = setting((), "validation pairs, in the same forms; if there are none, see held_out")
    test: str | tuple[str, ...] = setting((), "test pairs, in the same forms")
    columns: tuple[str, ...] = setting((), _COLUMNS)
    sheet: str = setting("", "sheet of a spreadsheet; empty: the first")
    corpus: tuple[CorpusConfig, ...] = setting((), "more corpora, each with its weight: [[data.corpus]]")
    source_language: str = setting("", 'language of the sources, a BCP 47 tag such as "en"; empty: guessed or unknown')
    target_language: str = setting("", 'language of the targets, such as "pt-BR"; empty: guessed or unknown')
    license: str = setting("", 'license of the trained model, for its card, such as "cc-by-4.0"')
    data_dir: str = setting("", "folder to which the paths of pairs are relative")
    cache_dir: str = setting(
        "", "folder for the encoded pairs, which several runs can share; empty: the folder of the run"
    )
    max_train_samples: int = setting(0, "number of training pairs to draw at random; 0: all", COUNT_OR_NONE)
    max_valid_samples: int = setting(0, "number of validation pairs to draw at random; 0: all", COUNT_OR_NONE)
    held_out: float = setting(
        0.02,
        "fraction of the training pairs to hold out for validation if there are no validation pairs, and again for "
        "the test; 0: none",
        Range(at_least=0, at_most=0.4),
    )
    max_malformed: float = setting(
        0.01,
        "largest fraction of a file's pairs that may be malformed: these are skipped; a file with more is refused",
        SHARE,
    )
    seed: int = setting(1, "seed of the held-out split, and of drawing max_train_samples and max_valid_samples", SEED)
    vocabulary: Literal["bpe", "unigram", "words", "characters", "symbols", "codes"] = setting(
        "bpe",
        "kind of tokens: learned subwords (bpe, unigram), words, characters, strings between spaces (symbols), or "
        "the subwords of bpe_codes",
        paper="byte-pair encoding; word pieces for English–French",
    )
    source_vocabulary: Literal["", "bpe", "unigram", "words", "characters", "symbols"] = setting(
        "", "kind of tokens of the sources; empty: same as vocabulary"
    )
    target_vocabulary: Literal["", "bpe", "unigram", "words", "characters", "symbols"] = setting(
        "", "kind of tokens of the targets; empty: as vocabulary"
    )
    vocab_size: int = setting(
        0,
        "tokens to learn; 0: chosen from the number of pairs",
        Range(at_least=0, at_most=2**24),
        paper="about 37,000; English–French: 32,000",
    )
    joint_vocabulary: bool = setting(
        True, "one vocabulary for source and target instead of two, if both are of one kind", paper="true"
    )
    alphabet: str = setting(
        "",
        'characters of vocabulary "characters", which then refuses any other; empty: those of the training pairs, and '
        "an unknown token",
    )
    bpe_codes: str = setting(
        "", 'merges for vocabulary "codes": a file of subword-nmt, for text that is already tokenized'
    )
    tokenizer: str | tuple[str, ...] = setting(
        (),
        "vocabulary from files instead of a learned one: a tokenizer.json, a SentencePiece model, or the folder of a "
        "model, for both sides; "
        "or two files, [source, target]",
    )
    subword_sampling: float = setting(
        0.0,
        "subword regularization, which segments each pair differently in every epoch: the fraction of merges that "
        "BPE-dropout skips, or the smoothing parameter of unigram; 0: off",
        SHARE,
    )
    made_up: float = setting(
        0.0,
        "fraction of each epoch's pairs to make up: with other letters or an unknown letter in the string that "
        'both sides share, or with an unknown tag and the word copied; needs vocabulary = "characters"',
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
        _unpack_single_files(self)
        self.corpora()
        for key in ("source_language", "target_language"):
            if getattr(self, key):
                require_language(key, getattr(self, key))
        if self.license and not re.fullmatch(LICENSE_NAME, self.license):
            raise ConfigError(
                "license must be a name of letters, digits and . + -, as in the head of a card, such as cc-by-4.0; "
                f"got {format_value(self.license)}"
            )
        if bool(self.source_language) != bool(self.target_language):
            raise ConfigError(
                "source_language and target_language go together; "
                f"got {self.describe_values('source_language', 'target_language')}"
            )
        if self.alphabet and "characters" not in self.vocabularies():
            raise ConfigError(
                f'alphabet goes with vocabulary = "characters"; got {self.describe_values("alphabet", "vocabulary")}'
            )
        if bool(self.bpe_codes) != (self.vocabulary == "codes"):
            raise ConfigError(
                'bpe_codes, a file of merges, goes with vocabulary = "codes"; '
                f"got {self.describe_values('vocabulary', 'bpe_codes')}"
            )
        if self.bpe_codes and not self.is_joint:
            raise ConfigError(
                "bpe_codes are one vocabulary for both sides; "
                f"got {self.describe_values('bpe_codes', 'joint_vocabulary', 'source_vocabulary', 'target_vocabulary')}"
            )
        if isinstance(self.tokenizer, tuple) and len(self.tokenizer) not in (0, 2):
            raise ConfigError(
                f"tokenizer must name a file for both sides or two, [source, target]; got {list(self.tokenizer)}"
            )
        if self.tokenizer and (learned := self.changed(*LEARNED_VOCABULARY)):
            raise ConfigError(
                "tokenizer names a vocabulary, so that none is learned; leave out what describes one to learn, "
                f"or set it to its default: {self.describe_values(*learned)}"
            )
        kinds = set(self.vocabularies())
        if self.subword_sampling and not kinds <= {"bpe", "unigram", "codes"}:
            got = self.describe_values("vocabulary", "source_vocabulary", "target_vocabulary")
            raise ConfigError(f'subword_sampling goes with vocabulary = "bpe", "unigram" or "codes"; got {got}')
        if self.made_up and (kinds != {"characters"} or self.alphabet):
            got = self.describe_values("vocabulary", "source_vocabulary", "target_vocabulary", "alphabet")
            raise ConfigError(f'made_up goes with vocabulary = "characters" without an alphabet; got {got}')

    def vocabularies(self) -> tuple[str, str]:
        """Return the kinds of vocabulary of the sources and of the targets."""
        return self.source_vocabulary or self.vocabulary, self.target_vocabulary or self.vocabulary

    @property
    def is_joint(self) -> bool:
        """True if one vocabulary is learned from both sides."""
        source, target = self.vocabularies()
        return self.joint_vocabulary and source == target

    def corpora(self) -> tuple[CorpusConfig, ...]:
        """List every corpus: first the corpus of `train`, `valid` and `test`, then the corpora in `corpus`."""
        first = CorpusConfig(train=self.train, valid=self.valid, test=self.test, columns=self.columns, sheet=self.sheet)
        return (first, *self.corpus) if first.train or first.valid or first.test else self.corpus


def _unpack_single_files(config: CorpusConfig | DataConfig) -> None:
    """Replace a list of a single file with the file. Refuses a file without a name."""
    for name in _PARTS:
        where = getattr(config, name)
        if where == "" or (isinstance(where, tuple) and "" in where):
            raise ConfigError(
                f"{name} must name a file of pairs, or two files, [source, target]; got {format_value(where)}. "
                f"Leave {name} out if there are none"
            )
        if isinstance(where, tuple) and len(where) == 1:
            object.__setattr__(config, name, where[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig(Checked):
    """How the text of pairs is normalized, and which pairs are dropped (docs/data.md). Lengths are in characters."""

    unicode: Literal["NFC", "NFKC", "none"] = setting("NFC", "Unicode normalization of every text")
    strip_control: bool = setting(
        True, "replace tabs and line breaks by spaces, and remove control characters and those without width"
    )
    max_chars: int = setting(
        5_000, "drop pairs with a side longer than this, in characters; 0: keep them", COUNT_OR_NONE
    )
    max_length_ratio: float = setting(
        5.0,
        "drop pairs if one side is more than this many times as long as the other, with 20 characters added to "
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
        "largest fraction of the pairs that a single filter may drop; a filter that would drop more is "
        "not applied, and a message says so",
        Range(more_than=0, at_most=1),
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if 0 < self.max_length_ratio <= 1:
            raise ConfigError(f"max_length_ratio must be 0 (any) or more than 1; got {self.max_length_ratio}")
