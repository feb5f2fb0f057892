"""A bundle → one HTML file that translates in any browser, offline: weights, tokenizer and search in plain JavaScript.

The page is `web/page.*`; `web_model.py` has the model. The proof runs the JavaScript of the written file in V8.
"""

import json
import re
from html import escape
from pathlib import Path
from typing import Any, cast

from ...bundle import Bundle
from ...config import ModelConfig
from ...errors import MissingExtraError
from .precision import ExportPrecision
from .proof import ConvertedModel
from .web_model import read_web_file, web_library, web_model

SMALL = 2_000_000  # parameters up to which weights stay float16: a page of at most some 5 MB


class HTMLExporter:
    """An `Exporter` for browsers."""

    program = "the page"
    precisions: tuple[ExportPrecision, ...] = ("float32", "float16", "int8")

    def default_precision(self, config: ModelConfig) -> ExportPrecision:
        """float16 for small models, int8 for others."""
        return "float16" if config.weight_bytes <= 4 * SMALL else "int8"

    def require_library(self) -> None:
        """Refuse to go on without the extra."""
        _library()

    def write(self, bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
        """Write `index.html`."""
        model = web_model(bundle, precision)
        title = _title(bundle)
        parts = {
            "title": escape(title),
            "source_language": escape(bundle.languages[0]),
            "target_language": escape(bundle.languages[1]),
            "style": read_web_file("page.css"),
            "example": escape(next(iter(bundle.probes), "")),
            "beam": str(min(8, bundle.decode.beam)),
            "footer": escape(
                f"{bundle.model.parameter_count():,} parameters, weights in {precision}. Made by allyouneed."
            ),
            "bundle": model.bundle,
            "weights": model.weights,
            "library": web_library(),
            "page": read_web_file("page.js"),
        }
        page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read_web_file("page.html"))
        (folder / "index.html").write_text(page, encoding="utf-8")

    def load(self, folder: Path, bundle: Bundle, precision: ExportPrecision) -> ConvertedModel:
        """The page at work in V8."""
        return HTMLFolder(folder)


class HTMLFolder:
    """The JavaScript of an exported page at work in V8; see `ConvertedModel`."""

    def __init__(self, folder: Path) -> None:
        page = (folder / "index.html").read_text(encoding="utf-8")
        scripts = dict(re.findall(r'<script type="[^"]+" id="(\w+)">(.*?)</script>', page, re.DOTALL))
        self._engine = _library().MiniRacer()
        self._engine.eval(scripts["library"])
        self._engine.eval(f"var translator = new Translator({scripts['bundle']}, {json.dumps(scripts['weights'])})")

    def translate(self, sources: list[list[int]], *, beam: int, max_length: int) -> list[list[int]]:
        """As in `ConvertedModel`."""
        self._compare()
        return [
            self.evaluate(
                f"search(translator.model, {source}, {{ beam: {beam}, maxLength: {max_length} }}).hypotheses[0].ids"
            )
            for source in sources
        ]

    def log_probabilities(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """As in `ConvertedModel`."""
        self._compare()
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

    def _compare(self) -> None:
        """Search as the proof does, whatever the bundle does."""
        self._engine.eval(
            "Object.assign(translator.config.decode, { alpha: 0, renormalize_logits: true, ...NO_RULES })"
        )

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


def _title(bundle: Bundle) -> str:
    match = re.search(r"^# (.+)$", bundle.card, re.MULTILINE)
    return match[1] if match else "A translator"


def _library() -> Any:
    try:
        import py_mini_racer
    except ImportError as error:
        raise MissingExtraError("HTML", "export") from error
    return py_mini_racer
