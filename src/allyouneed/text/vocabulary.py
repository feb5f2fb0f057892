"""The vocabulary of a corpus: its kind and size, whether the sides share it, and whether it is learned or read.

Every translation imports this file, so modules that only learn or read a vocabulary are imported inside the functions.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tokenizers import Tokenizer as Backend

from ..errors import DataError, refused
from ..machine.files import read_whole, write_whole
from .backends import (
    SOS,
    SPECIALS,
    bpe_backend,
    character_backend,
    codes_backend,
    symbol_backend,
    unigram_backend,
    word_backend,
)
from .lines import read_lines
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from ..config import DataConfig, ModelConfig
    from .sentencepiece import SentencePieceModel

# Vocabulary size by the largest number of pairs; a rule of thumb after the documentation of mozilla/translations.
VOCABULARY_SIZES = {5_000: 1_000, 20_000: 4_000, 500_000: 8_000, 1_000_000: 16_000}
MAX_VOCABULARY_SIZE = 32_000
WORDS_PER_SUBWORD = 4  # words are rarer than subwords
SPARED = 0.01  # share of the texts with unknown characters that decomposing must save, because it makes texts longer

# A function that yields the texts of a side from the start, in each call.
Texts = Callable[[], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokenizers of both sides, which are the same object if the sides share a vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """True if the sides share a vocabulary."""
        return self.source is self.target

    def with_vocab_size(self, model: ModelConfig) -> ModelConfig:
        """Return `model` with the sizes of this vocabulary.

        With two vocabularies, only the target embedding can be tied.
        """
        target_size = None if self.joint else len(self.target)
        differ = target_size is not None and self.source.names() != self.target.names()
        return replace(
            model,
            tied_embeddings="target" if differ and model.tied_embeddings == "all" else model.tied_embeddings,
            vocab_size=len(self.source),
            target_vocab_size=target_size,
            pad_id=self.source.pad_id,
            target_pad_id=None if self.joint else self.target.pad_id,
        )

    def fingerprint(self) -> str:
        """Return digits that differ for different vocabularies."""
        return " + ".join(side.fingerprint() for side in dict.fromkeys((self.source, self.target)))

    def first_difference(self, other: Vocabulary) -> str:
        """Return the first token, by id, that differs from `other`; "" if all are equal."""
        for side in ("source", "target"):
            names = getattr(self, side).names()
            others = getattr(other, side).names()
            for i, (name, another) in enumerate(zip(names, others, strict=False)):
                if name != another:
                    return f"id {i} of the {side} is {name!r} in one and {another!r} in the other"
            if len(names) != len(others):
                return f"the {side} has {len(names):,} ids in one and {len(others):,} in the other"
        return ""

    def save(self, folder: Path) -> None:
        """Write `files` to a folder."""
        for name, text in self.files().items():
            write_whole(folder / name, text)

    def files(self) -> dict[str, str]:
        """Return the content of `tokenizer.json`, and of `tokenizer.target.json` if the target has its own."""
        sides = {"tokenizer.json": self.source} | ({} if self.joint else {"tokenizer.target.json": self.target})
        return {name: tokenizer.to_json() for name, tokenizer in sides.items()}

    @classmethod
    def load(cls, folder: Path, *, joint: bool) -> Vocabulary:
        """Load what `save` wrote. Unless `joint`, the target has its own file."""
        names = ["tokenizer.json"] if joint else ["tokenizer.json", "tokenizer.target.json"]
        sides = [Tokenizer.load(folder / name) for name in names]
        return cls(sides[0], sides[-1])


def vocab_size(data: DataConfig, pairs: int, kind: str = "bpe") -> int:
    """Return the maximum size of a vocabulary of this kind: as set, or by the number of pairs."""
    if data.vocab_size:
        return data.vocab_size
    size = next((size for most, size in VOCABULARY_SIZES.items() if pairs <= most), MAX_VOCABULARY_SIZE)
    return size * WORDS_PER_SUBWORD if kind == "words" else size


def train_vocabulary(data: DataConfig, source: Texts, target: Texts, *, pairs: int) -> Vocabulary:
    """Learn the vocabulary that `data` describes from the texts of both sides. `pairs` is their number."""
    sides = ([source, target],) if data.is_joint else ([source], [target])
    backends = [_train(data, kind, texts, pairs) for kind, texts in zip(data.vocabularies(), sides, strict=False)]
    tokenizers = list(map(Tokenizer, backends))
    return Vocabulary(tokenizers[0], tokenizers[-1])


def _train(data: DataConfig, kind: str, sides: Sequence[Texts], pairs: int) -> Backend:
    from .tags import find_tags, without

    texts = (text for side in sides for text in side())
    size = vocab_size(data, pairs, kind)
    codes = read_lines(Path(data.data_dir, data.bpe_codes)) if kind == "codes" else []
    match kind:
        case "characters" if data.alphabet:
            return character_backend(data.alphabet)
        case "characters":
            decomposed = any(map(is_to_be_decomposed, sides))
            form = decompose if decomposed else str
            tags = [tag for side in sides for tag in find_tags(map(form, side()))]
            alphabet = sorted(set(chain.from_iterable(without(tags, map(form, texts)))))
            return character_backend(alphabet, tags=tags, unknown=True, decomposed=decomposed)
        case "symbols":
            return symbol_backend(texts)
        case "codes":
            return codes_backend(codes, texts, all_symbols=data.subword_sampling > 0)
        case "words":
            return word_backend(texts, vocab_size=size)
        case "unigram":
            return unigram_backend(texts, vocab_size=size)
        case _:
            return bpe_backend(texts, vocab_size=size)


def is_to_be_decomposed(texts: Texts) -> bool:
    """Return True if decomposing characters leaves far fewer unknown characters in new texts, as with Hangul syllables.

    The share of new texts with an unknown character is about the share of known texts that have a character found in no
    other known text (Good, 1953). Decomposing must lower this share by `SPARED`.
    """
    number = 0
    counts = Counter[str]()
    parts = Counter[str]()
    for text in texts():
        number += 1
        counts.update(set(text))
        parts.update(set(decompose(text)))
    once, parts_once = (sum(count == 1 for count in some.values()) for some in (counts, parts))
    return once - parts_once > SPARED * number


def decompose(text: str) -> str:
    """Put a text into Unicode's normal form NFD."""
    return unicodedata.normalize("NFD", text)


SENTENCEPIECE = (".model", ".spm")  # file endings


class StoredVocabulary(NamedTuple):
    """A vocabulary read from files, with a line for each special token that was added or renamed."""

    vocabulary: Vocabulary
    notes: list[str]


def vocabulary_paths(tokenizer: str | tuple[str, ...]) -> list[Path]:
    """List the files that `data.tokenizer` names: one for both sides, or one for each."""
    if not isinstance(tokenizer, str):
        return [Path(name) for name in tokenizer]
    if not (path := Path(tokenizer)).is_dir():
        return [path] if tokenizer else []
    files = [path / name for name in ("tokenizer.json", "tokenizer.target.json")]
    if not files[0].is_file():
        raise DataError(f"{path} has no tokenizer.json; name a file, or the folder of a bundle")
    return [file for file in files if file.is_file()]


def load_vocabulary(tokenizer: str | tuple[str, ...]) -> StoredVocabulary:
    """Load the vocabulary that `data.tokenizer` names. Refuses a vocabulary that cannot be used, and says why."""
    sides = []
    notes = list[str]()
    for path in vocabulary_paths(tokenizer):
        side, changes = _read(path)
        sides.append(side)
        notes += [f"{path}: {change}" for change in changes]
    return StoredVocabulary(Vocabulary(sides[0], sides[-1]), notes)


def _read(path: Path) -> tuple[Tokenizer, list[str]]:
    from .sentencepiece import SentencePieceModel
    from .tokenizer_adaptation import adapt_tokenizer

    if path.suffix in SENTENCEPIECE:
        return _read_sentencepiece(SentencePieceModel.load(path))
    if not path.exists():
        raise DataError(f"{path} does not exist")
    reasons = (OSError, ValueError, RecursionError, DataError)
    with refused(DataError, f"{path} cannot be used as a vocabulary", *reasons):
        text, changes = adapt_tokenizer(read_whole(path).decode())
        return Tokenizer.from_json(text), changes


def _read_sentencepiece(model: SentencePieceModel) -> tuple[Tokenizer, list[str]]:
    """Make a tokenizer of a SentencePiece model with its own ids and our names for control pieces.

    Control pieces that the model lacks are added at the end.
    """
    from .sentencepiece import make_tokenizer
    from .tokenizer_adaptation import NAMES

    controls = set(model.names) - {piece for piece, _ in model.pieces}
    names = {name: ours for ours, others in NAMES.items() for name in others[::-1] if name in controls}
    renamed = {name: ours for name, ours in names.items() if name != ours}
    known = [renamed.get(name, name) for name in model.names]
    missing = [name for name in SPECIALS if name not in known]
    changes = [f"{name!r} is {ours}, with id {known.index(ours):,}" for name, ours in renamed.items()]
    changes += [f"{name} was added, with id {i:,}" for i, name in enumerate(missing, start=len(known))]
    return make_tokenizer(model, [*known, *missing], start=SOS), changes
