"""The provenance of prepared pairs: every source and setting that they depend on, with a fingerprint of each."""

import json
from dataclasses import asdict
from hashlib import file_digest, sha256
from pathlib import Path

from ..config import CleanConfig, DataConfig
from ..errors import DataError, refused
from ..text.lines import file_ending
from ..text.vocabulary import Vocabulary
from .readers import Where, local_paths

PREPARED_FORMAT = 5  # version of the files that data/prepare.py writes

# The provenance has the content of these files and folders instead of their names.
_PATHS = {"train", "valid", "test", "columns", "corpus", "data_dir", "cache_dir", "bpe_codes", "tokenizer"}
_DESCRIPTIONS = {"source_language", "target_language", "license"}  # used only in the model card


def compute_provenance(
    data: DataConfig, clean: CleanConfig, max_length: int, vocabulary: Vocabulary | None
) -> dict[str, str]:
    """List every source with its kind and the fingerprint of its content, or its address; and all settings."""
    provenance = {"format": str(PREPARED_FORMAT), "model.max_length": str(max_length)}
    for number, corpus in enumerate(data.corpora()):
        name = f"data.corpus[{number}]" if number else "data"
        for part in ("train", "valid", "test"):
            provenance[f"{name}.{part}"] = _source_fingerprint(getattr(corpus, part), data.data_dir)
        provenance |= {f"{name}.columns": str(corpus.columns), f"{name}.weight": str(corpus.weight)}
        if corpus.synthetic:
            provenance[f"{name}.synthetic"] = "True"
    if data.bpe_codes:
        provenance["data.bpe_codes"] = _file_fingerprint(Path(data.data_dir, data.bpe_codes), data.data_dir)
    provenance |= {
        f"data.{key}": str(value) for key, value in asdict(data).items() if key not in _PATHS | _DESCRIPTIONS
    }
    provenance |= {f"clean.{key}": str(value) for key, value in asdict(clean).items()}
    if vocabulary:
        provenance["vocabulary"] = vocabulary.fingerprint()
    return provenance


def fingerprint(provenance: dict[str, str]) -> str:
    """Return 16 hexadecimal digits that differ for different provenances."""
    return sha256(json.dumps(provenance).encode()).hexdigest()[:16]


def describe_difference(then: dict[str, str], now: dict[str, str]) -> str:
    """Name every source and setting that differs, with its old and new value."""
    keys = sorted(key for key in then.keys() | now.keys() if then.get(key) != now.get(key))
    return ", ".join(f"{key} was {then.get(key)} and is {now.get(key)}" for key in keys)


def _source_fingerprint(where: Where, folder: str) -> str:
    """Return a fingerprint of the files of a source: their content and how they are read."""
    files = local_paths(where, folder=folder)
    kind = "aligned" if len(files) > 1 else "".join(map(file_ending, files))
    return f"{kind} {' + '.join(_file_fingerprint(file, folder) for file in files)}" if files else str(where)


def _file_fingerprint(path: Path, folder: str) -> str:
    if not path.exists():
        hint = "" if folder or path.is_absolute() else "; name the folder that it is in: data.data_dir=FOLDER"
        raise DataError(f"{path} does not exist{hint}")
    with refused(DataError, f"{path} could not be read", OSError), path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]
