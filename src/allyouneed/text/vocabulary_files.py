"""A vocabulary from files instead of one learned: of a bundle or a run, a `tokenizer.json`, a SentencePiece model."""

from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from ..files import read_whole
from .backends import SOS, SPECIALS
from .sentencepiece import SentencePieceModel
from .sentencepiece_vocabulary import make_tokenizer
from .tokenizer import Tokenizer
from .tokenizer_adaptation import NAMES, adapt_tokenizer
from .vocabulary import Vocabulary

SENTENCEPIECE = (".model", ".spm")  # endings of files


class StoredVocabulary(NamedTuple):
    """A vocabulary that was read from files, and a line for each special token that had to be added or renamed."""

    vocabulary: Vocabulary
    notes: list[str]


def vocabulary_paths(tokenizer: str | tuple[str, ...]) -> list[Path]:
    """The files that `data.tokenizer` names: one for both sides, or that of the source and that of the target."""
    if not isinstance(tokenizer, str):
        return [Path(name) for name in tokenizer]
    if not (path := Path(tokenizer)).is_dir():
        return [path] if tokenizer else []
    files = [path / name for name in ("tokenizer.json", "tokenizer.target.json")]
    if not files[0].is_file():
        raise DataError(f"{path} has no tokenizer.json; name a file, or the folder of a bundle")
    return [file for file in files if file.is_file()]


def load_vocabulary(tokenizer: str | tuple[str, ...]) -> StoredVocabulary:
    """The vocabulary of the files that `data.tokenizer` names. Refuses one that cannot be used, with the reason."""
    sides, notes = [], list[str]()
    for path in vocabulary_paths(tokenizer):
        side, changes = _read(path)
        sides.append(side)
        notes += [f"{path}: {change}" for change in changes]
    return StoredVocabulary(Vocabulary(sides[0], sides[-1]), notes)


def _read(path: Path) -> tuple[Tokenizer, list[str]]:
    if path.suffix in SENTENCEPIECE:
        return _read_sentencepiece(SentencePieceModel.load(path))
    try:
        text, changes = adapt_tokenizer(read_whole(path).decode())
        return Tokenizer.from_json(text), changes
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (OSError, ValueError, RecursionError, DataError) as error:
        raise DataError(f"{path} cannot be used as a vocabulary: {error}") from error


def _read_sentencepiece(model: SentencePieceModel) -> tuple[Tokenizer, list[str]]:
    """A SentencePiece model with its own ids. Its control pieces get our names; those that it lacks come after them."""
    controls = set(model.names) - {piece for piece, _ in model.pieces}
    names = {name: ours for ours, others in NAMES.items() for name in others[::-1] if name in controls}
    renamed = {name: ours for name, ours in names.items() if name != ours}
    known = [renamed.get(name, name) for name in model.names]
    missing = [name for name in SPECIALS if name not in known]
    changes = [f"{name!r} is {ours}, with id {known.index(ours):,}" for name, ours in renamed.items()]
    changes += [f"{name} was added, with id {i:,}" for i, name in enumerate(missing, start=len(known))]
    return make_tokenizer(model, [*known, *missing], start=SOS), changes
