"""Import checkpoints of other programs: recognize their kind, read them, and write a bundle."""

import re
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from ...bundle import Bundle, read_license, split_card
from ...config.language_tags import require_language
from ...errors import CheckpointError, ConfigError, OutputError, refused
from ...machine.files import folder_written_whole
from ...run.run_bundle import describe_model, write_card
from .checkpoint_files import read_json_table, read_limited
from .foreign_model import Checkpoint, build_imported_model

LARGEST_CARD = 2**20  # bytes
LANGUAGE_CODE = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")
LANGUAGES_OF_CARD = re.compile(r"^language:\s*\n((?:\s*- *['\"]?[A-Za-z-]{2,12}['\"]?\s*\n)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of checkpoint. `read_KIND(folder)`, in its module of this folder, returns it as a `Checkpoint`."""

    program: str
    looks_like: str  # describes the files that identify a folder of this kind
    patterns: tuple[str, ...]  # of these files
    model_type: str = ""  # as in config.json

    def matches(self, folder: Path) -> bool:
        """Return True if a folder is of this kind."""
        if not all(any(folder.glob(pattern)) for pattern in self.patterns):
            return False
        try:
            return not self.model_type or read_json_table(folder / "config.json").get("model_type") == self.model_type
        except CheckpointError:
            return False


KINDS = {
    "huggingface": Kind("Hugging Face Marian", 'config.json with "model_type": "marian"', ("config.json",), "marian"),
    "marian": Kind(
        "Marian", "one .npz; and source.spm and target.spm with a *.vocab.yml, or only one or two *.spm", ("*.npz",)
    ),
}


def recognize(folder: Path) -> str:
    """Name the kind of a folder. Refuses a folder of no known kind."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder; name the folder of a checkpoint")
    for name, kind in KINDS.items():
        if kind.matches(folder):
            return name
    known = "; ".join(f"{kind.program}: {kind.looks_like}" for kind in KINDS.values())
    raise CheckpointError(f"{folder} is not a checkpoint of a known kind. Known kinds are {known}")


def import_checkpoint(
    folder: str | Path, output: str | Path, *, source_language: str = "", target_language: str = ""
) -> Bundle:
    """Write the checkpoint in `folder` as a new bundle, completely or not at all.

    The languages, if given, replace the checkpoint's.
    """
    folder, output = Path(folder), Path(output)
    if output.exists():  # before the checkpoint is read, which may take a while
        raise OutputError(f"{output} already exists; name a new folder")
    for name, tag in (("--source-language", source_language), ("--target-language", target_language)):
        if tag:
            require_language(name, tag)
    kind = recognize(folder)
    bundle = read_checkpoint(kind, folder)
    source, target = bundle.languages
    bundle = replace(bundle, languages=(source_language or source, target_language or target))
    bundle = replace(bundle, card=imported_card(bundle, folder, program=KINDS[kind].program))
    with folder_written_whole(output) as partial:
        bundle.save(partial)
    return bundle


def read_checkpoint(kind: str, folder: Path) -> Bundle:
    """Read the checkpoint in a folder as a bundle without a card. Refuses, as a `CheckpointError`, anything else."""
    what = f"{folder} describes no model that a bundle can hold"
    with refused(CheckpointError, what, KeyError, ConfigError, TypeError, ValueError):
        checkpoint: Checkpoint = getattr(import_module(f".{kind}", __package__), f"read_{kind}")(folder)
        checkpoint = replace(checkpoint, config=checkpoint.vocabulary.with_vocab_size(checkpoint.config))
    source, target = (code if LANGUAGE_CODE.fullmatch(code) else "" for code in checkpoint.languages)
    return Bundle(
        build_imported_model(checkpoint.stored, checkpoint.config),
        checkpoint.vocabulary.source,
        checkpoint.vocabulary.target,
        replace(checkpoint.decode, copy_untranslatable=False, retry_repetition=False),  # other programs do neither
        normalization=checkpoint.normalization,
        languages=(source, target),
    )


def imported_card(bundle: Bundle, folder: Path, *, program: str) -> str:
    """Write a bundle's README.md with the license and languages of the imported checkpoint in `folder`."""
    try:
        head, _ = split_card(read_limited(folder / "README.md", LARGEST_CARD).decode(errors="replace"))
    except CheckpointError:
        head = ""
    license_name = read_license(head)
    languages_match = LANGUAGES_OF_CARD.search(head)
    named = re.findall(r"[A-Za-z-]{2,12}", re.sub(r"(?m)^\s*- *", "", languages_match[1])) if languages_match else []
    languages = list(dict.fromkeys(filter(None, bundle.languages))) or named
    name = folder.resolve().name
    lines = [
        f"Imported from a checkpoint of {program}, {name}: {describe_model(bundle.model)}.",
        *([f"Translates {bundle.languages[0]} into {bundle.languages[1]}."] if all(bundle.languages) else []),
        f"License: {license_name}." if license_name else "Its checkpoint names no license.",
    ]
    return write_card(name, lines, tags=languages, license_name=license_name)
