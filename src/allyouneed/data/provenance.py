"""The provenance of prepared pairs: sources and settings. When it changes, they are prepared again."""

import json
from dataclasses import asdict
from hashlib import file_digest, sha256
from pathlib import Path

from ..config import CleanConfig, DataConfig
from ..errors import DataError
from ..text.lines import file_ending
from ..text.vocabulary import Vocabulary
from .readers import Where, local_paths

PREPARED_FORMAT = 5  # of the files that data/prepare.py writes

# Settings that name files, whose content counts, or folders.
_PATHS = {"train", "valid", "test", "columns", "corpus", "data_dir", "cache_dir", "bpe_codes", "tokenizer"}
_DESCRIPTIONS = {"source_language", "target_language", "license"}  # for the card of the model only


def compute_provenance(
    data: DataConfig, clean: CleanConfig, max_length: int, vocabulary: Vocabulary | None
) -> dict[str, str]:
    """Every source by its kind and the fingerprint of its content, or its address; every setting by its value."""
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
    """16 hexadecimal digits that differ for different provenances."""
    return sha256(json.dumps(provenance).encode()).hexdigest()[:16]


def describe_difference(then: dict[str, str], now: dict[str, str]) -> str:
    """Every source and setting that differs, and how."""
    keys = sorted(key for key in then.keys() | now.keys() if then.get(key) != now.get(key))
    return ", ".join(f"{key} was {then.get(key)} and is {now.get(key)}" for key in keys)


def _source_fingerprint(where: Where, folder: str) -> str:
    """How the files of a source are read, which the ending of a single one chooses, and their content."""
    files = local_paths(where, folder=folder)
    kind = "aligned" if len(files) > 1 else "".join(map(file_ending, files))
    return f"{kind} {' + '.join(_file_fingerprint(file, folder) for file in files)}" if files else str(where)


def _file_fingerprint(path: Path, folder: str) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()[:16]
    except FileNotFoundError:
        hint = "" if folder or path.is_absolute() else "; name the folder that it is in: data.data_dir=FOLDER"
        raise DataError(f"{path} does not exist{hint}") from None
    except OSError as error:
        raise DataError(f"{path} could not be read: {error.strerror or error}") from error
