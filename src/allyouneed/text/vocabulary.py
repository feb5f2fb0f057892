"""The vocabulary of a corpus: its kind and size, and whether both sides share it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from ..config import DataConfig, ModelConfig
from ..errors import ConfigError
from ..files import write_whole
from .lines import read_lines
from .tokenizer import Tokenizer

# Vocabulary size for up to so many pairs; a rule of thumb after the documentation of mozilla/translations.
VOCABULARY_SIZES = {5_000: 1_000, 20_000: 4_000, 500_000: 8_000, 1_000_000: 16_000}
MAX_VOCABULARY_SIZE = 32_000
WORDS_PER_SUBWORD = 4  # words are rarer than subwords

# The texts of a side; each call starts at the first.
Texts = Callable[[], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokenizers of both sides; the same one twice if they share it."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Whether the sides share one."""
        return self.source is self.target

    def with_vocab_size(self, model: ModelConfig) -> ModelConfig:
        """`model` with the sizes of this vocabulary. Refuses tied embeddings of two vocabularies."""
        target_size = None if self.joint else len(self.target)
        if target_size and model.tied_embeddings == "all" and self.source.names() != self.target.names():
            raise ConfigError(
                "data.joint_vocabulary=false makes two vocabularies, and so do two files in data.tokenizer; "
                'set model.tied_embeddings to "target" or "none" with it'
            )
        return replace(
            model,
            vocab_size=len(self.source),
            target_vocab_size=target_size,
            pad_id=self.source.pad_id,
            target_pad_id=None if self.joint else self.target.pad_id,
        )

    def fingerprint(self) -> str:
        """Digits that differ for different vocabularies."""
        return " + ".join(side.fingerprint() for side in dict.fromkeys((self.source, self.target)))

    def first_difference(self, other: "Vocabulary") -> str:
        """The first token in the order of the ids that is another one in `other`; empty if all ids are the same."""
        for side in ("source", "target"):
            names, others = getattr(self, side).names(), getattr(other, side).names()
            for i, (name, another) in enumerate(zip(names, others, strict=False)):
                if name != another:
                    return f"id {i} of the {side} is {name!r} in one and {another!r} in the other"
            if len(names) != len(others):
                return f"the {side} has {len(names):,} ids in one and {len(others):,} in the other"
        return ""

    def save(self, folder: Path) -> None:
        """Write its `files` into a folder."""
        for name, text in self.files().items():
            write_whole(folder / name, text)

    def files(self) -> dict[str, str]:
        """The content of `tokenizer.json`, and of `tokenizer.target.json` if the target has another."""
        sides = {"tokenizer.json": self.source} | ({} if self.joint else {"tokenizer.target.json": self.target})
        return {name: tokenizer.to_json() for name, tokenizer in sides.items()}

    @classmethod
    def load(cls, folder: Path, *, joint: bool) -> "Vocabulary":
        """What `save` wrote, with the target's file unless the sides share one vocabulary."""
        source = Tokenizer.load(folder / "tokenizer.json")
        return cls(source, source if joint else Tokenizer.load(folder / "tokenizer.target.json"))


def vocab_size(data: DataConfig, pairs: int) -> int:
    """The maximum size of a vocabulary: as set, or by the number of pairs."""
    if data.vocab_size:
        return data.vocab_size
    size = next((size for most, size in VOCABULARY_SIZES.items() if pairs <= most), MAX_VOCABULARY_SIZE)
    return size * WORDS_PER_SUBWORD if data.vocabulary == "words" else size


def train_vocabulary(data: DataConfig, source: Texts, target: Texts, *, pairs: int) -> Vocabulary:
    """The vocabulary that `data` describes, learned from the texts of both sides of `pairs` pairs."""
    if data.joint_vocabulary:
        both = _train(data, chain(source(), target()), pairs)
        return Vocabulary(both, both)
    return Vocabulary(_train(data, source(), pairs), _train(data, target(), pairs))


def _train(data: DataConfig, texts: Iterable[str], pairs: int) -> Tokenizer:
    size = vocab_size(data, pairs)
    if data.vocabulary == "characters":
        return Tokenizer.characters(
            data.alphabet or sorted(set(chain.from_iterable(texts))), byte_fallback=data.byte_fallback
        )
    if data.vocabulary == "codes":
        return Tokenizer.from_bpe_codes(
            read_lines(Path(data.data_dir, data.bpe_codes)), texts, all_symbols=data.subword_sampling > 0
        )
    if data.vocabulary == "words":
        return Tokenizer.train_words(texts, vocab_size=size, split=data.split)
    if data.vocabulary == "unigram":
        return Tokenizer.train_unigram(texts, vocab_size=size, split=data.split)
    return Tokenizer.train_bpe(texts, vocab_size=size, split=data.split)
