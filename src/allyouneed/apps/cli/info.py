"""`allyouneed info`: facts about a bundle: languages, sizes, parameters, files, and possible exports."""

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import BundleFolder

if TYPE_CHECKING:
    from ...bundle import Bundle
    from ...machine.checksums import Checksums


def info(
    bundle: BundleFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Describe a bundle: languages, sizes, parameters of each part, files, and the formats it can be exported to.

    At the end comes the model card, BUNDLE/README.md, with data, scores and license. Every file is checked against its
    SHA-256 in BUNDLE/SHA256SUMS.

    For example:
      allyouneed info runs/mine
      allyouneed info runs/mine --json
    """
    from ...bundle import model_files
    from ...machine.checksums import Checksums
    from ...machine.files import to_json
    from ...translator.unread_bundle import UnreadBundle

    loaded = UnreadBundle.load(bundle)
    described = _describe(loaded, model_files(Path(bundle)), Checksums(Path(bundle)))
    if as_json:
        print(to_json(described | {"card": loaded.card}, indent=2))
        return
    for title, table in described.items():
        if not table:
            continue
        print(title.capitalize() + (f": {table}" if not isinstance(table, dict) else ""))
        if isinstance(table, dict):
            width = max(map(len, table))
            for name, value in table.items():
                print(f"    {name:<{width}}  {value:,}" if isinstance(value, int) else f"    {name:<{width}}  {value}")
    print()
    print(loaded.card.strip())


def _describe(bundle: "Bundle", files: list[Path], checksums: "Checksums") -> dict[str, Any]:
    from ...config.export_limits import exportable

    config = bundle.config
    parts = dict.fromkeys(("embeddings and projection", "encoder", "decoder"), 0)
    for name, shape in bundle.shapes.items():
        room = name.partition(".")[0]
        parts[room if room in parts else "embeddings and projection"] += prod(shape)
    tokenizers = (bundle.source_tokenizer, bundle.target_tokenizer)
    return {
        "languages": " → ".join(bundle.languages) if all(bundle.languages) else "",
        "model": {
            "layers": f"{config.encoder_layers} + {config.decoder_layers}",
            "d_model": config.d_model,
            "d_ff": config.d_ff,
            "heads": config.heads,
            "norm": config.norm,
            "positions": config.positions,
            "activation": config.activation,
            "tied_embeddings": config.tied_embeddings,
            "max_length": f"{config.max_length} tokens",
            "vocabulary": f"{len(bundle.source_tokenizer):,} tokens"
            + ("" if config.target_vocab_size is None else f"; target: {len(bundle.target_tokenizer):,}"),
        },
        "translates here": _engine(bundle),
        "parameters": {**parts, "all": sum(parts.values())},
        "checksums": _compare(checksums),
        "files": {str(file.relative_to(checksums.folder)): f"{file.stat().st_size:,} bytes" for file in files},
        "export": {name: reason or "yes" for name, reason in exportable(config, tokenizers).items()},
    }


def _engine(bundle: "Bundle") -> str:
    """Name the engine that `translate` uses on this machine by default."""
    from ...native.library import chosen_instruction_set, instruction_sets
    from ...translator.engine import make_engine

    engine = make_engine([bundle])
    if type(engine).__name__ != "NativeEngine":
        return f"nn/ in PyTorch, {engine.precision}"
    return f"the engine in C, {instruction_sets()[chosen_instruction_set()]}, {engine.precision}"


def _compare(checksums: "Checksums") -> str:
    """Compare the files with SHA256SUMS. Loading the bundle has already refused every changed file except the card."""
    if not checksums.present:
        return "none; a change of the files would not be noticed. Saving the bundle again adds them"
    if not checksums.matches("README.md"):
        return "README.md was changed since the bundle was written; the other files are as they were written"
    return "all files are as they were written"
