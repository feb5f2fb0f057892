"""The checkpoints of other programs that can be imported, and the road of all imports: recognize, read, write."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from ...bundle import Bundle
from ...errors import CheckpointError, OutputError
from ...files import folder_written_whole
from ...language_tags import require_language
from .imported_card import imported_card

IMPORTERS = {  # module of this room: its importer
    "huggingface_import": "HuggingFaceImporter",
    "marian_import": "MarianImporter",
    "fairseq_import": "FairseqImporter",
    "joeynmt_import": "JoeyNMTImporter",
}


class Importer(Protocol):
    """A kind of checkpoint; each has a module of this room, which shares the names of weights with its export."""

    program: str  # whose checkpoints they are
    looks_like: str  # the files by which a folder of this kind is recognized

    def recognizes(self, folder: Path) -> bool:
        """Whether a folder is of this kind. It opens small files only, and raises no error."""
        ...

    def read(self, folder: Path) -> Bundle:
        """The checkpoint as a bundle. Refuses, as a `CheckpointError`, what cannot be read or expressed."""
        ...


def importer(module: str) -> Importer:
    """That of a module of `IMPORTERS`."""
    return cast(Importer, getattr(import_module(f".{module}", __package__), IMPORTERS[module])())


def recognize(folder: Path) -> Importer:
    """The importer of a folder. Refuses a folder of no known kind."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder; name the folder of a checkpoint")
    known = [importer(module) for module in IMPORTERS]
    for one in known:
        if one.recognizes(folder):
            return one
    kinds = "; ".join(f"{one.program}: {one.looks_like}" for one in known)
    raise CheckpointError(f"{folder} is no checkpoint of a known kind. Known are {kinds}")


def import_checkpoint(
    folder: str | Path, output: str | Path, *, source_language: str = "", target_language: str = ""
) -> Bundle:
    """Write the checkpoint in `folder` as a new bundle, whole or not at all. Languages replace those it names."""
    folder, output = Path(folder), Path(output)
    if output.exists():  # before the checkpoint is read, which may take a while
        raise OutputError(f"{output} exists already; name a new folder")
    for name, tag in (("--source-language", source_language), ("--target-language", target_language)):
        if tag:
            require_language(name, tag)
    kind = recognize(folder)
    bundle = kind.read(folder)
    source, target = bundle.languages
    bundle = replace(bundle, languages=(source_language or source, target_language or target))
    bundle = replace(bundle, card=imported_card(bundle, folder, program=kind.program))
    with folder_written_whole(output) as partial:
        bundle.save(partial)
    return bundle
