"""The card of an imported model: what it is, where it is from, and the licence and languages that its own names."""

import re
from pathlib import Path

from ...bundle import LICENSE, Bundle, front_matter
from ...errors import CheckpointError
from .checkpoint_files import read_limited

LARGEST_CARD = 2**20  # bytes
LANGUAGE = re.compile(r"^language:\s*\n((?:\s*- *['\"]?[A-Za-z-]{2,12}['\"]?\s*\n)+)", re.MULTILINE)


def imported_card(bundle: Bundle, folder: Path, *, program: str) -> str:
    """The README.md of a bundle made of the checkpoint in `folder`. Its head is what model hubs read."""
    head = _head(folder)
    license_match, languages_match = LICENSE.search(head), LANGUAGE.search(head)
    named = re.findall(r"[A-Za-z-]{2,12}", re.sub(r"(?m)^\s*- *", "", languages_match[1])) if languages_match else []
    languages = list(dict.fromkeys(filter(None, bundle.languages))) or named
    config, name = bundle.model.config, folder.resolve().name
    metadata = ["language:", *(f"- {tag}" for tag in languages)] if languages else []
    metadata += [f"license: {license_match[1]}"] if license_match else []
    lines = [
        *(["---", *metadata, "---", ""] if metadata else []),
        f"# {name}",
        "",
        f"Imported from a checkpoint of {program}, {name}: {config.encoder_layers}+{config.decoder_layers} layers, "
        f"d_model {config.d_model}, d_ff {config.d_ff}, {config.heads} heads: "
        f"{bundle.model.parameter_count():,} parameters.",
        *([f"Translates {bundle.languages[0]} into {bundle.languages[1]}."] if all(bundle.languages) else []),
        f"License: {license_match[1]}." if license_match else "Its checkpoint names no license.",
        "",
        "    from allyouneed import Translator",
        '    Translator.load("this/folder")("…")',
        "",
    ]
    return "\n".join(lines)


def _head(folder: Path) -> str:
    """The front matter of the checkpoint's own card; empty if it has none."""
    try:
        return front_matter(read_limited(folder / "README.md", LARGEST_CARD).decode(errors="replace"))
    except CheckpointError:
        return ""
