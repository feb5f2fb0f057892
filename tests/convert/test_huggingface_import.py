"""The import of `MarianMTModel`, beside transformers."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.convert.formats import export_bundle
from allyouneed.convert.imports import import_checkpoint
from allyouneed.corpus.normalize import Normalization
from allyouneed.nn.weights import weights
from allyouneed.translator import Translator
from bundles import make_bundle


@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_what_was_exported_comes_back_equal(tmp_path: Path, tied: str) -> None:
    bundle = replace(make_bundle(tied_embeddings=tied), normalization=Normalization(unicode="NFKC"))
    export_bundle(bundle, tmp_path / "marian", to="huggingface", sentences=1)
    import_checkpoint(tmp_path / "marian", tmp_path / "bundle")
    again = Bundle.load(tmp_path / "bundle")
    ours, imported = weights(bundle.model), weights(again.model)
    assert ours.keys() == imported.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(imported[name], tensor, rtol=0, atol=0)
    assert again.source_tokenizer.fingerprint() == bundle.source_tokenizer.fingerprint()
    assert again.normalization == bundle.normalization
    texts = ["abc", "ja", "ijabcdefg"]
    assert Translator(again, decode=bundle.decode).translate(texts) == Translator(bundle).translate(texts)
