"""Convert a bundle to one HTML file that translates offline in any browser: weights, tokenizer, search, model in C.

The model is the engine of `native/`, compiled to WebAssembly, so a page translates exactly as a CPU does in the same
precision. In `web/`, `engine.js` calls the engine, and `search.js` has greedy and beam search. `tokenizer.js` is the
vocabulary, with the normalizers of `characters.js` and the models of `subwords.js`. `sentences.js`, `spans.js`,
`capitals.js` and `constraints.js` handle texts by the rules of `page_rules.py`. `translator.js` combines them, and
explains how to use them in the exported page (`page.*`) or any other page. After a conversion, the JavaScript of the
written file runs in V8, and its translations are compared with the model's.
"""

import json
import re
from base64 import b64encode
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from ...bundle import Bundle
from ...native.build import MODULE
from ...native.engine import Precision, as_structure, list_weights
from ...native.library import FIELDS, POSITION_FIELDS
from ...nn.weights import weights
from .exports import banned_ids
from .page_rules import bundle_rules, page_rules

WEB = Path(__file__).with_name("web")
_DECODE = (
    "alpha", "length_penalty", "patience", "length_ratio", "extra_length", "min_length", "min_ratio",
    "no_repeat_ngram_size", "renormalize_logits", "forced_eos", "early_stopping",
)  # fmt: skip
LIBRARY = (
    "engine.js",
    "characters.js",
    "subwords.js",
    "tokenizer.js",
    "spans.js",
    "capitals.js",
    "sentences.js",
    "constraints.js",
    "search.js",
    "translator.js",
)


def write_html(bundle: Bundle, folder: Path, precision: Precision) -> None:
    """Write `index.html`."""
    model = web_model(bundle, precision)
    title = _title(bundle)
    parts = {
        "title": escape(title),
        "source_language": escape(bundle.languages[0]),
        "target_language": escape(bundle.languages[1]),
        "style": read_web_file("page.css"),
        "example": escape(next(iter(bundle.probes), "")),
        "beam": str(bundle.decode.beam),
        "most": str(max(8, bundle.decode.beam)),
        "footer": escape(f"{bundle.model.parameter_count():,} parameters, weights in {precision}. Made by allyouneed."),
        "bundle": model.bundle,
        "weights": model.weights,
        "library": web_library(),
        "page": read_web_file("page.js"),
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read_web_file("page.html"))
    (folder / "index.html").write_text(page, encoding="utf-8")


class HTMLFolder:
    """The JavaScript of an exported page in V8; see `ConvertedModel`."""

    def __init__(self, folder: Path, _: Bundle | None = None) -> None:
        from py_mini_racer import MiniRacer

        page = (folder / "index.html").read_text(encoding="utf-8")
        scripts = dict(re.findall(r'<script type="[^"]+" id="(\w+)">(.*?)</script>', page, re.DOTALL))
        self._engine = MiniRacer()
        self._engine.eval(scripts["library"])
        self._engine.eval(f"var translator = new Translator({scripts['bundle']}, {json.dumps(scripts['weights'])})")

    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        options = f"{{ beam: {beam}, maxLength: {max_length} }}"
        return cast(list[int], self._compare(f"search(translator.model, {source}, {options}).hypotheses[0].ids"))

    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        gains = self._compare(
            f"""(() => {{
                const step = translator.model.start({source});
                const target = {target};
                const gains = target.slice(1).map((token, i) => {{
                    step.next([0], [target[i]]);
                    return step.logProbabilities(0)[token];
                }});
                step.free();
                return gains;
            }})()"""
        )
        return cast(list[float], gains)

    def _compare(self, expression: str) -> Any:
        """Evaluate an expression with the search of the comparison, whatever the bundle's own settings are."""
        self._engine.eval(
            "Object.assign(translator.config.decode, { alpha: 0, renormalize_logits: true, ...NO_RULES })"
        )
        return self.evaluate(expression)

    def text(self, source: str, *, beam: int = 1) -> str:
        """Return the translation of a text as the page shows it."""
        return cast(str, self.evaluate(f"translator.translateText({json.dumps(source)}, {{ beam: {beam} }}).text"))

    def close(self) -> None:
        """Shut down the V8 engine."""
        self._engine.close()

    def evaluate(self, expression: str) -> Any:
        """Evaluate a JavaScript expression and return its value through JSON. `translator` is the page's translator."""
        as_lists = "(_, value) => (ArrayBuffer.isView(value) ? [...value] : value)"
        return json.loads(str(self._engine.eval(f"JSON.stringify({expression}, {as_lists})")))


def _title(bundle: Bundle) -> str:
    match = re.search(r"^# (.+)$", bundle.card, re.MULTILINE)
    return match[1] if match else "A translator"


@dataclass(frozen=True, slots=True)
class WebModel:
    """The arguments of `new Translator(bundle, weights)` in JavaScript: JSON and base64."""

    bundle: str
    weights: str


def web_model(bundle: Bundle, precision: Precision) -> WebModel:
    """Pack a bundle for the JavaScript of `web_library`. The JSON may be put into a `<script>`."""
    index, blob = _pack(bundle, precision)
    text = json.dumps(_describe(bundle, precision, index), ensure_ascii=False, separators=(",", ":"))
    return WebModel(_in_script(text), b64encode(blob).decode())


def _in_script(text: str) -> str:
    """Escape JSON so that it may be put into a `<script>`."""
    return text.replace("<", "\\u003c")


def web_library() -> str:
    """Return the JavaScript of the model: one script that defines `Translator` and does not touch the page."""
    module = b64encode(MODULE.read_bytes()).decode()
    rules = json.dumps(page_rules(), ensure_ascii=False, separators=(",", ":"))
    constants = [f'const ENGINE = "{module}";', f"const RULES_OF_PYTHON = {_in_script(rules)};"]
    return "\n".join([*constants, *(read_web_file(name) for name in LIBRARY)])


def read_web_file(name: str) -> str:
    """Read a text file of `web/`."""
    return (WEB / name).read_text(encoding="utf-8")


def _describe(bundle: Bundle, precision: Precision, index: list[dict[str, Any] | None]) -> dict[str, Any]:
    """Return the data that the page needs, for JSON."""
    model, decode, target = bundle.model.config, bundle.decode, bundle.target_tokenizer
    sizes = as_structure(model, precision)
    limit = min(model.max_length, decode.max_length or model.max_length)
    config = {
        "sizes": {name: getattr(sizes, name) for name in FIELDS},
        "position_sizes": POSITION_FIELDS[model.positions],
        "sos_id": target.sos_id,
        "eos_id": target.eos_id,
        "banned_ids": list(banned_ids(bundle)),
        "decode": {name: getattr(decode, name) for name in _DECODE} | {"max_length": limit},
        "source_specials": bundle.source_tokenizer.start_length + 1,
    }
    joint = bundle.source_tokenizer is target
    return {
        "config": config,
        "normalization": asdict(bundle.normalization),
        "rules": bundle_rules(bundle),
        "tensors": index,
        "source_tokenizer": json.loads(bundle.source_tokenizer.to_json()),
        "target_tokenizer": None if joint else json.loads(target.to_json()),
    }


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round weights (out, in) to int8 as linear.c does, with scales (out,): weight ≈ scale · int8."""
    in_pairs = weight[:, : weight.shape[1] // 2 * 2].reshape(len(weight), -1, 2).sum(2)
    scale = torch.cat([weight, in_pairs], dim=1).abs().amax(1).clamp_(min=1e-12) / 127
    return (weight / scale[:, None]).round_().to(torch.int8), scale


def _pack(bundle: Bundle, precision: Precision) -> tuple[list[dict[str, Any] | None], bytes]:
    """Write all weights as one block of bytes, in the order of the engine. Also returns where each weight is.

    In int8, the matrices of linear maps and the embeddings are stored as integers with scales, as on a CPU.
    """
    stored = weights(bundle.model)
    index: list[dict[str, Any] | None] = []
    blob = bytearray()

    def append(tensor: Tensor) -> int:
        blob.extend(bytes(-len(blob) % 4))
        offset = len(blob)
        blob.extend(tensor.numpy().tobytes())
        return offset

    for weight in list_weights(bundle.model.config):
        if not weight:
            index.append(None)
            continue
        tensor = stored[weight.name].float()
        entry: dict[str, Any] = {"name": weight.name, "shape": list(weight.shape)}
        if precision == "int8" and weight.name.endswith((".weight", ".table")):
            levels, scales = quantize(tensor)
            entry |= {"offset": append(levels), "scales": append(scales)}
        else:
            entry["offset"] = append(tensor)
        index.append(entry)
    return index, bytes(blob)
