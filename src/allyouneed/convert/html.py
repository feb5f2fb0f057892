"""A bundle → one HTML file that translates in any browser, offline: weights, tokenizer and search in plain JavaScript.

The parts are in `web/`: `transformer.js` is Figure 1, `search.js` greedy and beam search, `tokenizer.js` the
vocabulary, `page.*` what a reader sees. The proof runs the JavaScript of the written file in V8.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from ..bundle import Bundle
from ..config import ModelConfig
from ..errors import MissingExtraError
from ..inference.quantization import quantize
from ..nn import EncoderBlock
from ..nn.weights import weights
from .precision import ExportPrecision
from .proof import ConvertedModel, banned_ids

WEB = Path(__file__).with_name("web")
LIBRARY = ("weights.js", "tokenizer.js", "transformer.js", "search.js", "translator.js")
SMALL = 2_000_000  # parameters up to which weights stay float16: a page of at most some 5 MB


class HTMLExporter:
    """An `Exporter` for browsers."""

    program = "the page"
    precisions: tuple[ExportPrecision, ...] = ("float32", "float16", "int8")

    def default_precision(self, config: ModelConfig) -> ExportPrecision:
        """float16 for small models, int8 for others."""
        return "float16" if config.weight_bytes <= 4 * SMALL else "int8"

    def why_not(self, config: ModelConfig) -> str:
        """Every model can be expressed."""
        return ""

    def require_library(self) -> None:
        """Refuse to go on without the extra."""
        _library()

    def write(self, bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
        """Write `index.html`."""
        index, blob, shared = _pack(bundle, precision)
        title = _title(bundle)
        parts = {
            "title": escape(title),
            "style": _read("page.css"),
            "example": escape(next(iter(bundle.probes), "")),
            "beam": str(min(8, bundle.decode.beam)),
            "footer": escape(
                f"{bundle.model.parameter_count():,} parameters, weights in {precision}. Made by allyouneed."
            ),
            "bundle": _json(_describe(bundle, index, shared)),
            "weights": b64encode(blob).decode(),
            "library": "\n".join(_read(name) for name in LIBRARY),
            "page": _read("page.js"),
        }
        page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _read("page.html"))
        (folder / "index.html").write_text(page, encoding="utf-8")

    def load(self, folder: Path, bundle: Bundle, precision: ExportPrecision) -> ConvertedModel:
        """The page at work in V8."""
        return HTMLFolder(folder, bundle)


class HTMLFolder:
    """The JavaScript of an exported page at work in V8; see `ConvertedModel`."""

    def __init__(self, folder: Path, bundle: Bundle) -> None:
        page = (folder / "index.html").read_text(encoding="utf-8")
        scripts = dict(re.findall(r'<script type="[^"]+" id="(\w+)">(.*?)</script>', page, re.DOTALL))
        self._engine = _library().MiniRacer()
        self._engine.eval(scripts["library"])
        self._engine.eval(f"var translator = new Translator({scripts['bundle']}, {json.dumps(scripts['weights'])})")

    def translate(self, sources: list[list[int]], *, beam: int, max_length: int) -> list[list[int]]:
        """As in `ConvertedModel`."""
        self._engine.eval("translator.config.decode.alpha = 0")
        return [
            self.evaluate(
                f"search(translator.model, {source}, {{ beam: {beam}, maxLength: {max_length} }}).hypotheses[0].ids"
            )
            for source in sources
        ]

    def log_probabilities(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """As in `ConvertedModel`."""
        return [
            self.evaluate(
                f"""(() => {{
                    let state = translator.model.start(translator.model.encode({source}));
                    const target = {target};
                    return target.slice(1).map((token, i) => {{
                        const step = translator.model.decode([target[i]], state);
                        state = step.state;
                        return step.logProbabilities[token];
                    }});
                }})()"""
            )
            for source, target in zip(sources, targets, strict=True)
        ]

    def text(self, source: str, *, beam: int = 1) -> str:
        """What the page shows as the translation of a text."""
        return cast(
            str, self.evaluate(f"translator.translate({json.dumps(source)}, {{ beam: {beam} }}).hypotheses[0].text")
        )

    def close(self) -> None:
        """End V8."""
        self._engine.close()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, by way of JSON; `translator` is the page's."""
        return json.loads(self._engine.eval(f"JSON.stringify({expression})"))


def _describe(bundle: Bundle, index: list[dict[str, Any]], shared: dict[str, str]) -> dict[str, Any]:
    """What the page has to know, as JSON."""
    model, decode, target = bundle.model.config, bundle.decode, bundle.target_tokenizer
    first = cast(EncoderBlock, bundle.model.encoder.layers[0])
    limit = min(model.max_length, decode.max_length or model.max_length)
    config = {
        "d_model": model.d_model,
        "heads": model.heads,
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "activation": model.activation,
        "norm": model.norm,
        "norm_eps": first.attention_residual.norm.eps,
        "positions": model.positions,
        "max_length": model.max_length,
        "sos_id": target.sos_id,
        "eos_id": target.eos_id,
        "banned_ids": list(banned_ids(target)),
        "decode": {
            "alpha": decode.alpha,
            "length_penalty": decode.length_penalty,
            "patience": decode.patience,
            "length_ratio": decode.length_ratio,
            "extra_length": decode.extra_length,
            "max_length": limit,
        },
    }
    joint = bundle.source_tokenizer is target
    return {
        "config": config,
        "normalization": {"unicode": bundle.normalization.unicode, "strip_control": bundle.normalization.strip_control},
        "tensors": index,
        "shared": shared,
        "source_tokenizer": json.loads(bundle.source_tokenizer.to_json()),
        "target_tokenizer": None if joint else json.loads(target.to_json()),
    }


def _pack(bundle: Bundle, precision: ExportPrecision) -> tuple[list[dict[str, Any]], bytes, dict[str, str]]:
    """All weights as one block of bytes, where each is in it, and the names of those that are stored as another."""
    stored = weights(bundle.model)
    index, blob = [], bytearray()

    def append(tensor: Tensor) -> int:
        blob.extend(bytes(-len(blob) % 4))
        offset = len(blob)
        blob.extend(tensor.numpy().tobytes())
        return offset

    for name, tensor in stored.items():
        entry: dict[str, Any] = {"name": name, "shape": list(tensor.shape), "dtype": "float32"}
        if tensor.dim() == 2 and precision == "int8" and not name.endswith("position.encoding"):
            numbers, scales = quantize(tensor)
            entry |= {"dtype": "int8", "offset": append(numbers), "scales": append(scales)}
        elif precision == "float32":
            entry["offset"] = append(tensor)
        else:
            entry |= {"dtype": "float16", "offset": append(tensor.to(torch.float16))}
        index.append(entry)
    table = "target_embedding.table" if "target_embedding.table" in stored else "source_embedding.table"
    shared = {"target_embedding.table": table, "projection.table": table}
    return index, bytes(blob), {name: original for name, original in shared.items() if name not in stored}


def _title(bundle: Bundle) -> str:
    match = re.search(r"^# (.+)$", bundle.card, re.MULTILINE)
    return match[1] if match else "A translator"


def _json(table: dict[str, Any]) -> str:
    """JSON that may stand in a `<script>`."""
    return json.dumps(table, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def _library() -> Any:
    try:
        import py_mini_racer
    except ImportError as error:
        raise MissingExtraError("HTML", "html") from error
    return py_mini_racer
