"""The small files of a bundle: config.json, the tokenizers and the model card.

All of them are read in one sweep and compared with SHA256SUMS, and only then is anything parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .config import DecodeConfig, ModelConfig
from .config.settings import build_parts, from_table, require_whole
from .config.suggest import near_path
from .errors import BundleError, ConfigError, DataError, refused
from .machine.checksums import SUMS, Checksums
from .machine.files import parse_json, read_whole
from .text.letter_case import CaseStatistics
from .text.normalize import Normalization
from .text.spans import CopyStatistics
from .text.tokenizer import Tokenizer
from .text.vocabulary import Vocabulary

FORMAT = 2
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
CARD_FILE = "README.md"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.target.json")  # the second only if the target has its own vocabulary
VERIFIED = (CONFIG_FILE, *TOKENIZER_FILES)  # anybody may edit the card, and the weights are verified when they are read


@dataclass(frozen=True, slots=True)
class LearnedFrom:
    """The statistics of the training pairs, as config.json stores them."""

    longest_source: int = 0
    longest_repetition: int = 0
    copies: CopyStatistics = field(default_factory=CopyStatistics)
    letter_case: CaseStatistics = field(default_factory=CaseStatistics)

    def __post_init__(self) -> None:
        require_whole("longest_source", self.longest_source, least=0)
        require_whole("longest_repetition", self.longest_repetition, least=0)


# The types of what config.json says about the model besides settings.
_FACTS: dict[str, Any] = {
    "checksums": str,
    "languages": dict[str, str],
    "probes": tuple[str, ...],
    "definition": str,
    "builder": str,
    "learned_from": LearnedFrom,
}

# The fields of `LearnedFrom` and its parts that bundles of earlier versions lack.
_OPTIONAL = {
    "longest_source",
    "longest_repetition",
    "alone",
    "inside",
    "signs",
    "letter_case",
    "contradicted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleConfig:
    """The content of config.json. `Bundle` explains the fields."""

    model: ModelConfig
    decode: DecodeConfig
    normalization: Normalization
    languages: tuple[str, str] = ("", "")
    probes: tuple[str, ...] = ()
    definition: str = ""
    builder: str = ""
    learned_from: LearnedFrom = field(default_factory=LearnedFrom)
    checksums: str = ""  # the name of the list of checksums; earlier versions wrote none


@dataclass(frozen=True, slots=True)
class BundleParts:
    """The contents of a bundle's folder except the weights."""

    checksums: Checksums
    config: BundleConfig
    vocabulary: Vocabulary
    card: str

    def fields(self) -> dict[str, Any]:
        """Return the fields of a `Bundle` except the model."""
        config = self.config
        return {
            "source_tokenizer": self.vocabulary.source,
            "target_tokenizer": self.vocabulary.target,
            "decode": config.decode,
            "card": self.card,
            "copy_statistics": config.learned_from.copies,
            "longest_source": config.learned_from.longest_source,
            "longest_repetition": config.learned_from.longest_repetition,
            "case_statistics": config.learned_from.letter_case,
            "normalization": config.normalization,
            "languages": config.languages,
            "probes": config.probes,
            "definition": config.definition,
            "builder": config.builder,
        }


def read_parts(checksums: Checksums) -> BundleParts:
    """Read all small files of a bundle. Refuses damaged files, and files that do not belong together."""
    folder = checksums.folder
    contents = _read_files(folder)
    checksums.verify_contents({name: content for name, content in contents.items() if name in VERIFIED})
    config = _parse_config(folder, contents)
    tokenizers = TOKENIZER_FILES[: 1 if config.model.target_vocab_size is None else 2]
    checksums.require_lines(CONFIG_FILE, CARD_FILE, WEIGHTS_FILE, *tokenizers)
    _require_whole(folder, contents, CARD_FILE, WEIGHTS_FILE, *tokenizers)
    if config.checksums and not checksums.present:
        raise _not_whole(folder, f"{SUMS} does not exist")
    vocabulary = _parse_vocabulary(folder, {name: contents[name] for name in tokenizers}, config.model)
    return BundleParts(checksums, config, vocabulary, contents[CARD_FILE].decode(errors="replace"))


def read_config(folder: str | Path) -> BundleConfig:
    """Read only the config.json of a bundle, without comparing checksums."""
    return _parse_config(Path(folder), _read_files(Path(folder), CONFIG_FILE))


def _read_files(folder: Path, *names: str) -> dict[str, bytes]:
    """Read the small files of a bundle, or only those with these names. Leaves out files that do not exist.

    The weights are opened, so that an unreadable file is refused before any work, but not read.
    """
    if not folder.is_dir():
        in_runs = Path("runs", folder.name)
        meant = f"; did you mean {in_runs}?" if in_runs.is_dir() else near_path(folder) or near_path(in_runs)
        raise BundleError(f"{folder} is not a folder; expected a bundle, as `allyouneed train` leaves it{meant}")
    contents = {}
    for name in names or (*VERIFIED, CARD_FILE, WEIGHTS_FILE):
        path = folder / name
        if path.exists():
            with refused(BundleError, f"{path} could not be read", OSError):
                contents[name] = read_whole(path, 0 if name == WEIGHTS_FILE else -1)
    return contents


def _parse_config(folder: Path, contents: dict[str, bytes]) -> BundleConfig:
    _require_whole(folder, contents, CONFIG_FILE)
    where = f"{folder}/{CONFIG_FILE}"
    try:
        parsed = parse_json(contents[CONFIG_FILE])
    except ValueError as error:
        raise BundleError(f"{where} {error}") from error
    table: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
    version = table.get("format")
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        raise BundleError(
            f"{where} has format {version!r:.40}; this version of allyouneed reads format {FORMAT}"
            + ("; a newer version wrote it: upgrade allyouneed" if newer else "")
        )
    # Bundles of earlier versions have no normalization; their training used these defaults.
    settings = build_parts(
        {"model": ModelConfig, "decode": DecodeConfig, "normalization": Normalization},
        {"normalization": {}} | table,
        where=where,
    )
    facts = {}
    for name, kind in _FACTS.items():
        if name in table:  # otherwise an earlier version wrote the file
            what = f"{where}, {name}, is not what `allyouneed train` writes"
            with refused(BundleError, what, AttributeError, KeyError, TypeError, ConfigError):
                facts[name] = from_table(kind, table[name], _OPTIONAL)
    languages = facts.pop("languages", {})
    source = languages.get("source", "")
    target = languages.get("target", "")
    # Languages of imported bundles may not be valid tags ("de_DE"), but must not contain signs that terminals act on.
    if not re.fullmatch(r"[\w-]*", source) or not re.fullmatch(r"[\w-]*", target):
        raise BundleError(f"{where}, languages, must be tags of letters, digits and -; got {languages!r:.80}")
    return BundleConfig(**settings, **facts, languages=(source, target))


def _require_whole(folder: Path, contents: dict[str, bytes], *names: str) -> None:
    for name in names:
        if name not in contents:
            raise _not_whole(folder, f"{name} does not exist")


def _parse_vocabulary(folder: Path, texts: dict[str, bytes], sizes: ModelConfig) -> Vocabulary:
    """Return the tokenizers of both sides. Refuses tokenizers that do not fit a model of these sizes."""
    tokenizers = []
    for name, content in texts.items():
        with refused(BundleError, f"{folder}/{name} is not a tokenizer", UnicodeDecodeError, DataError):
            tokenizers.append(Tokenizer.from_json(content.decode()))
    vocabulary = Vocabulary(tokenizers[0], tokenizers[-1])
    for name, tokenizer, size, pad_id in (
        ("tokenizer.json", vocabulary.source, sizes.vocab_size, sizes.pad_id),
        (
            "tokenizer.target.json",
            vocabulary.target,
            sizes.effective_target_vocab_size,
            sizes.effective_target_pad_id,
        ),
    ):
        if len(tokenizer) != size:
            raise BundleError(
                f"{folder}/{name} has {len(tokenizer)} ids but the model was made for {size}; "
                "the two files belong to different models"
            )
        is_source = name == "tokenizer.json" and not vocabulary.joint
        _require_framing(tokenizer, pad_id, f"{folder}/{name}", is_source=is_source)
    return vocabulary


def _require_framing(tokenizer: Tokenizer, pad_id: int, path: str, *, is_source: bool) -> None:
    """Refuse a tokenizer that does not put `<sos>` and `<eos>` around a text, or that has another padding id.

    Only a tokenizer of sources may omit `<sos>`.
    """
    ids = tokenizer.encode("")
    framed = [tokenizer.sos_id, tokenizer.eos_id]
    if [*ids[:1], *ids[1:][-1:]] != framed and not (is_source and ids == framed[1:]):
        raise BundleError(
            f"{path} must put {framed} (<sos>, <eos>) around a text; it makes {ids} of an empty one. "
            "Its post_processor is missing or wrong"
        )
    if tokenizer.pad_id != pad_id:
        raise BundleError(f"{path} has <pad> as id {tokenizer.pad_id} but the model was made for pad_id={pad_id}")


def _not_whole(folder: Path, why: str) -> BundleError:
    return BundleError(
        f"{folder} is not a complete bundle ({why}); a run that was stopped before its first checkpoint leaves none"
    )
