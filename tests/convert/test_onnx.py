"""The export to ONNX, beside onnxruntime."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from allyouneed import Translator
from allyouneed.apps.convert.exports import Proof, export_bundle
from allyouneed.apps.convert.onnx import DECODER_INPUTS
from allyouneed.bundle import Bundle
from bundles import make_bundle
from shell import run_example
from vocabularies import VOCABULARIES

UNUSUAL = {
    "norm": "pre", "activation": "gelu", "tied_embeddings": "none", "positions": "learned", "d_k": 5, "d_v": 7,
    "decoder_layers": 2,
}  # fmt: skip
OPTIONS = {"positions": "rotary", "query_key_norm": True, "d_k": 5, "encoder_layers": 2}
CASES = {"usual": ("characters", {}), "unusual": ("unigram", UNUSUAL), "options": ("codes", OPTIONS)}


class Exported(NamedTuple):
    """An exported bundle, the kind of its vocabulary, and the folder and the proof of the export."""

    bundle: Bundle
    kind: str
    folder: Path
    proof: Proof


@pytest.fixture(scope="module", params=CASES)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Export a model with few layers, since a graph takes seconds for each of them."""
    kind, options = CASES[request.param]
    tokenizer = VOCABULARIES[kind]()
    sizes = {"vocab_size": len(tokenizer), "pad_id": tokenizer.pad_id, "encoder_layers": 1, "decoder_layers": 1}
    bundle = replace(make_bundle(**(sizes | options)), source_tokenizer=tokenizer, target_tokenizer=tokenizer)
    folder = tmp_path_factory.mktemp("onnx") / "out"
    return Exported(bundle, kind, folder, export_bundle(bundle, folder, to="onnx", sentences=5))


def test_onnxruntime_translates_equally(exported: Exported) -> None:
    proof = exported.proof
    assert proof.precision == "float32"
    assert proof.identical + proof.ties == proof.sentences == 5
    assert proof.max_difference < 1e-4


def test_batches_of_any_size_and_length_give_the_rows_of_single_sentences(exported: Exported) -> None:
    import onnxruntime

    bundle = exported.bundle
    encoder, decoder = (
        onnxruntime.InferenceSession(str(exported.folder / f"{part}.onnx")) for part in ("encoder", "decoder")
    )
    pad = bundle.source_tokenizer.pad_id
    rows = [bundle.source_tokenizer.encode(text) for text in ("abcdefg", "j", "ab")]
    length = max(map(len, rows)) + 2
    padded = np.array([row + [pad] * (length - len(row)) for row in rows])

    def first_step(source: np.ndarray) -> np.ndarray:
        keys, values, mask = encoder.run(None, {"source": source})
        last = np.full(len(source), bundle.source_tokenizer.sos_id)
        past = keys[:, :, :, :0], values[:, :, :, :0]
        inputs = dict(zip(DECODER_INPUTS, (last, *past, keys, values, mask), strict=True))
        log_probabilities: np.ndarray = decoder.run(None, inputs)[0]
        return log_probabilities

    together = first_step(padded)
    for row, expected in zip(rows, together, strict=True):
        np.testing.assert_allclose(first_step(np.array([row]))[0], expected, atol=1e-5)
    assert (together[:, [pad, bundle.source_tokenizer.sos_id]] == -np.inf).all()


def test_the_graphs_compute_nothing_in_float64(exported: Exported) -> None:
    import onnx

    for name in ("encoder.onnx", "decoder.onnx"):
        graph = onnx.load(exported.folder / name).graph
        types = {value.type.tensor_type.elem_type for value in graph.value_info}
        assert onnx.TensorProto.FLOAT in types
        assert onnx.TensorProto.DOUBLE not in types


def test_onnx_greedy(exported: Exported) -> None:
    greedy = Translator(exported.bundle).using(
        beam=1, copy_untranslatable=False, retry_repetition=False, extra_length=200
    )
    has_accents = exported.kind != "characters"
    texts = ["abc", "j\ti\x07hgf"] + ["cafe\u0301 e cafe\u0301"] * has_accents  # as two characters
    printed = run_example("onnx_greedy.py", exported.folder, *texts)
    assert printed == "".join(f"{text}  →  {greedy(text)}\n" for text in texts)
    if not has_accents:
        with pytest.raises(subprocess.CalledProcessError) as refusal:
            run_example("onnx_greedy.py", exported.folder, "axbé")
        assert re.fullmatch("'axbé': .*: x é\n", refusal.value.stderr)
