"""Read the vocabulary that `data.tokenizer` names: a bundle's, another library's tokenizer.json, or SentencePiece's."""

from pathlib import Path
from typing import NamedTuple

from ..errors import DataError, refused
from ..machine.files import read_whole
from .sentencepiece import LARGEST_SPM, SentencePieceModel, adapt_model
from .tokenizer import Tokenizer
from .tokenizer_adaptation import adapt_tokenizer
from .vocabulary import Vocabulary

SENTENCEPIECE = (".model", ".spm")  # file endings


class StoredVocabulary(NamedTuple):
    """A vocabulary read from files, with a line for each special token that was added or renamed."""

    vocabulary: Vocabulary
    notes: list[str]


def vocabulary_paths(tokenizer: str | tuple[str, ...]) -> list[Path]:
    """List the files that `data.tokenizer` names: one for both sides, or one for each."""
    if not isinstance(tokenizer, str):
        return [Path(name) for name in tokenizer]
    path = Path(tokenizer)
    if not path.is_dir():
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
    if not path.exists():
        raise DataError(f"{path} does not exist")
    is_sentencepiece = path.suffix in SENTENCEPIECE
    reasons = (OSError, ValueError, RecursionError, DataError)
    with refused(DataError, f"{path} cannot be used as a vocabulary", *reasons):
        content = read_whole(path, LARGEST_SPM + 1 if is_sentencepiece else -1)
        if is_sentencepiece:
            model = SentencePieceModel.parse(content)
            return adapt_model(model)
        text, changes = adapt_tokenizer(content.decode())
        return Tokenizer.from_json(text), changes
