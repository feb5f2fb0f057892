"""A bundle → one HTML file that translates in any browser, offline: weights, tokenizer and search in plain JavaScript.

In `web/`, `transformer.js` is Figure 1, `search.js` greedy and beam search, and `kernels.wat` the products of
matrices in WebAssembly; `tokenizer.js` is the vocabulary, with the normalizers of `characters.js` and the models of
`subwords.js`. `translator.js` joins them and says how to use them, in the exported page, `page.*`, or in any other.
The proof runs the JavaScript of the written file in V8.
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
from ...nn import EncoderBlock
from ...nn.weights import weights
from ...text.sentences import sentence_spans
from ...translator import Translator
from ...younger.query_key_norm import EPS
from .exports import ExportPrecision, banned_ids

WEB = Path(__file__).with_name("web")
_MODEL = (
    "d_model", "heads", "encoder_layers", "decoder_layers", "activation", "norm", "positions", "max_length",
)  # fmt: skip
_DECODE = (
    "alpha", "length_penalty", "patience", "length_ratio", "extra_length", "min_length", "min_ratio",
    "no_repeat_ngram_size", "renormalize_logits",
)  # fmt: skip
_LONGEST_ABBREVIATION = 4  # letters: longer ones are hardly pieces of a vocabulary
LIBRARY = (
    "kernels.js",
    "weights.js",
    "characters.js",
    "subwords.js",
    "tokenizer.js",
    "transformer.js",
    "sentences.js",
    "search.js",
    "translator.js",
)


def write_html(bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
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
        "footer": escape(f"{bundle.model.parameter_count():,} parameters, weights in {precision}. Made by allyouneed."),
        "bundle": model.bundle,
        "weights": model.weights,
        "library": web_library(),
        "page": read_web_file("page.js"),
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], read_web_file("page.html"))
    (folder / "index.html").write_text(page, encoding="utf-8")


class HTMLFolder:
    """The JavaScript of an exported page at work in V8; see `ConvertedModel`."""

    def __init__(self, folder: Path, _: Bundle | None = None) -> None:
        from py_mini_racer import MiniRacer

        page = (folder / "index.html").read_text(encoding="utf-8")
        scripts = dict(re.findall(r'<script type="[^"]+" id="(\w+)">(.*?)</script>', page, re.DOTALL))
        self._engine = MiniRacer()
        self._engine.eval(scripts["library"])
        self._engine.eval(f"var translator = new Translator({scripts['bundle']}, {json.dumps(scripts['weights'])})")

    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        """As in `ConvertedModel`."""
        options = f"{{ beam: {beam}, maxLength: {max_length} }}"
        return cast(list[int], self._compare(f"search(translator.model, {source}, {options}).hypotheses[0].ids"))

    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        """As in `ConvertedModel`."""
        gains = self._compare(
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
        return cast(list[float], gains)

    def _compare(self, expression: str) -> Any:
        """The value of an expression in a search as the proof does it, whatever the bundle does."""
        self._engine.eval(
            "Object.assign(translator.config.decode, { alpha: 0, renormalize_logits: true, ...NO_RULES })"
        )
        return self.evaluate(expression)

    def text(self, source: str, *, beam: int = 1) -> str:
        """What the page shows as the translation of a text."""
        return cast(str, self.evaluate(f"translator.translateText({json.dumps(source)}, {{ beam: {beam} }}).text"))

    def close(self) -> None:
        """End V8."""
        self._engine.close()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, by way of JSON; `translator` is the page's."""
        return json.loads(str(self._engine.eval(f"JSON.stringify({expression})")))


def _title(bundle: Bundle) -> str:
    match = re.search(r"^# (.+)$", bundle.card, re.MULTILINE)
    return match[1] if match else "A translator"


@dataclass(frozen=True, slots=True)
class WebModel:
    """What `new Translator(bundle, weights)` of the JavaScript takes: JSON, and base64."""

    bundle: str
    weights: str


def web_model(bundle: Bundle, precision: ExportPrecision) -> WebModel:
    """A bundle for the JavaScript of `library`; the JSON may stand in a `<script>`."""
    index, blob, shared = _pack(bundle, precision)
    text = json.dumps(_describe(bundle, index, shared), ensure_ascii=False, separators=(",", ":"))
    return WebModel(text.replace("<", "\\u003c"), b64encode(blob).decode())


def web_library() -> str:
    """The JavaScript of the model: one script that defines `Translator` and touches no page."""
    instructions = b64encode((WEB / "kernels.wasm").read_bytes()).decode()
    return "\n".join([f'const KERNELS = "{instructions}";', *(read_web_file(name) for name in LIBRARY)])


def read_web_file(name: str) -> str:
    """The text of a file of `web/`."""
    return (WEB / name).read_text(encoding="utf-8")


def _describe(bundle: Bundle, index: list[dict[str, Any]], shared: dict[str, str]) -> dict[str, Any]:
    """What the page has to know, as JSON."""
    model, decode, target = bundle.model.config, bundle.decode, bundle.target_tokenizer
    first = cast(EncoderBlock, bundle.model.encoder.layers[0])
    limit = min(model.max_length, decode.max_length or model.max_length)
    config = {
        **{name: getattr(model, name) for name in _MODEL},
        "norm_eps": first.attention_residual.norm.eps,
        "query_key_norm_eps": EPS,
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
        "splitting": {
            "languages": list(bundle.languages),
            "abbreviations": _abbreviations(bundle),
            "split": Translator.splits_sentences_of(bundle),
        },
        "tensors": index,
        "shared": shared,
        "source_tokenizer": json.loads(bundle.source_tokenizer.to_json()),
        "target_tokenizer": None if joint else json.loads(target.to_json()),
    }


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round weights (out, in) to int8 of the same shape, with scales (out,): weight ≈ scale · int8."""
    scale = weight.abs().amax(1).clamp_(min=1e-12) / 127
    return (weight / scale[:, None]).round_().to(torch.int8), scale


def _abbreviations(bundle: Bundle) -> list[str]:
    """Short words of the vocabulary after whose full stop no sentence ends in the language of the sources."""
    tokenizer, language = bundle.source_tokenizer, bundle.languages[0]
    pieces = {piece.strip("␣▁") for piece in tokenizer.pieces(range(len(tokenizer)))}
    short = sorted(piece for piece in pieces if 1 < len(piece) <= _LONGEST_ABBREVIATION and piece.isalpha())
    return [word for word in short if len(sentence_spans(f"{word}. Abcde", language=language)) == 1]


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
