"""The formats that a bundle can be exported to, and the road that all exports take: write, prove, keep or remove."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast, get_args

from ...bundle import Bundle
from ...config import ModelConfig
from ...errors import ConfigError, ExportError
from ...export_limits import exportable, unexpressed_settings
from ...fast.selection import choose_engine
from ...files import folder_written_whole
from .precision import ExportPrecision
from .proof import ConvertedModel, Proof, probe_sources, prove, random_sources, require_passed

FORMATS = {
    "ctranslate2": "CTranslate2Exporter",
    "onnx": "ONNXExporter",
    "huggingface": "HuggingFaceExporter",
    "html": "HTMLExporter",
}


class Exporter(Protocol):
    """A format; each has a module of this room."""

    program: str  # what runs the export
    precisions: tuple[ExportPrecision, ...]

    def default_precision(self, config: ModelConfig) -> ExportPrecision:
        """The precision of a model with this config if none is asked for."""
        ...

    def require_library(self) -> None:
        """Raise `MissingExtraError` where the format's libraries are not installed."""
        ...

    def write(self, bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
        """Write the bundle into an empty folder."""
        ...

    def load(self, folder: Path, bundle: Bundle, precision: ExportPrecision) -> ConvertedModel:
        """What `write` wrote, at work in the other program."""
        ...


def exporter(name: str) -> Exporter:
    """That of a format of `FORMATS`."""
    return cast(Exporter, getattr(import_module(f".{name}", __package__), FORMATS[name])())


def export_bundle(
    bundle: Bundle | str | Path,
    folder: str | Path,
    *,
    to: str,
    precision: str | None = None,
    sentences: int = 50,
) -> Proof:
    """Write `bundle`, or that in a folder, into a new folder in the format `to`, and prove the export on its probes and
    random `sentences`.

    The folder appears once the export is proven, whole or not at all. Refuses what the format cannot express, a model
    that reads fewer than 3 tokens, and a folder that exists.
    """
    bundle = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    if to not in FORMATS:
        raise ConfigError(f"the format must be one of {', '.join(FORMATS)}; got {to!r}")
    chosen = exporter(to)
    precision = precision or chosen.default_precision(bundle.model.config)
    if precision not in get_args(ExportPrecision) or precision not in chosen.precisions:
        raise ConfigError(f"{to} is exported in {' or '.join(chosen.precisions)}; got precision {precision!r}")
    if reason := choose_engine(bundle.model)[1]:
        raise ExportError(f"{reason.split(';')[0]}; only models that compute what their config says are exported")
    if reason := exportable(bundle.model.config, (bundle.source_tokenizer, bundle.target_tokenizer))[to]:
        raise ExportError(reason)
    if sentences < 1:
        raise ConfigError(f"sentences must be at least 1; got {sentences}")
    if (longest := bundle.model.config.max_length) < 3:
        raise ExportError(
            f"a model with model.max_length = {longest} reads no text between <sos> and <eos>, "
            "so that its export cannot be compared with it; at least 3 are needed"
        )
    chosen.require_library()
    with folder_written_whole(Path(folder)) as partial:
        sources = probe_sources(bundle) + random_sources(bundle, sentences, seed=1)
        chosen.write(bundle, partial, precision)
        proof = prove(bundle, chosen.load(partial, bundle, precision), sources)
        require_passed(proof, program=chosen.program, rounded=precision != "float32")
        proof = replace(proof, precision=precision, unexpressed_settings=unexpressed_settings(bundle.decode, to))
        proof.save(partial)
    return proof
