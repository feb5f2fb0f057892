"""A vocabulary from files instead of one learned: those of a bundle or a run, or a `tokenizer.json`."""

from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from ..files import read_whole
from .tokenizer import Tokenizer
from .tokenizer_adaptation import adapt_tokenizer
from .vocabulary import Vocabulary


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


def read_vocabulary(tokenizer: str | tuple[str, ...]) -> StoredVocabulary:
    """The vocabulary of the files that `data.tokenizer` names. Refuses one that cannot be used, with the reason."""
    sides, notes = [], list[str]()
    for path in vocabulary_paths(tokenizer):
        side, changes = _read(path)
        sides.append(side)
        notes += [f"{path}: {change}" for change in changes]
    return StoredVocabulary(Vocabulary(sides[0], sides[-1]), notes)


def _read(path: Path) -> tuple[Tokenizer, list[str]]:
    try:
        text, changes = adapt_tokenizer(read_whole(path).decode())
        return Tokenizer.from_json(text), changes
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (OSError, ValueError, RecursionError, DataError) as error:
        raise DataError(f"{path} cannot be used as a vocabulary: {error}") from error
