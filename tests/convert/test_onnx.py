"""The export to ONNX, beside onnxruntime."""

from pathlib import Path

import numpy as np
import pytest

from allyouneed.apps.convert.exports import Proof, export_bundle
from allyouneed.apps.convert.onnx import DECODER_INPUTS
from allyouneed.bundle import Bundle
from bundles import make_bundle

UNUSUAL = {
    "norm": "pre", "activation": "gelu", "tied_embeddings": "none", "positions": "learned", "d_k": 5, "d_v": 7,
    "decoder_layers": 2,
}  # fmt: skip
OPTIONS = {"positions": "rotary", "query_key_norm": True, "d_k": 5, "encoder_layers": 2}


@pytest.fixture(scope="module", params=[{}, UNUSUAL, OPTIONS], ids=["usual", "unusual", "options"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Path, Proof]:
    bundle = make_bundle(**{"encoder_layers": 1, "decoder_layers": 1} | request.param)  # a graph takes seconds a layer
    folder = tmp_path_factory.mktemp("onnx") / "out"
    return bundle, folder, export_bundle(bundle, folder, to="onnx", sentences=5)


def test_onnxruntime_translates_equally(exported: tuple[Bundle, Path, Proof]) -> None:
    _, _, proof = exported
    assert proof.identical + proof.ties == proof.sentences == 5
    assert proof.max_difference < 1e-4


def test_batches_of_any_size_and_length_give_the_rows_of_single_sentences(exported: tuple[Bundle, Path, Proof]) -> None:
    import onnxruntime

    bundle, folder, _ = exported
    encoder = onnxruntime.InferenceSession(str(folder / "encoder.onnx"))
    decoder = onnxruntime.InferenceSession(str(folder / "decoder.onnx"))
    pad = bundle.source_tokenizer.pad_id
    rows = [bundle.source_tokenizer.encode(text) for text in ("abcdefg", "j", "ab")]
    padded = np.array([row + [pad] * (9 - len(row)) for row in rows])

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


def test_the_graphs_compute_nothing_in_float64(exported: tuple[Bundle, Path, Proof]) -> None:
    import onnx

    for name in ("encoder.onnx", "decoder.onnx"):
        graph = onnx.load(exported[1] / name).graph
        types = {value.type.tensor_type.elem_type for value in graph.value_info}
        assert onnx.TensorProto.FLOAT in types
        assert onnx.TensorProto.DOUBLE not in types
