import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.convert.ctranslate2 import convert, prove, random_sources
from allyouneed.errors import ExportError, MissingExtraError
from allyouneed.nn import Transformer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from twins import scatter


def make_bundle(**sizes: Any) -> Bundle:
    tokenizer = Tokenizer.characters("abcdefghij")
    config = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=16, d_ff=24, heads=2,
        encoder_layers=2, decoder_layers=3, max_length=40,
    )  # fmt: skip
    model = Transformer(replace(config, **sizes)).eval()
    scatter(model)
    return Bundle(model, tokenizer, tokenizer, DecodeConfig())


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("share", ["none", "target", "all"])
def test_a_converted_model_says_the_same(tmp_path: Path, norm: str, activation: str, share: str) -> None:
    positions = "learned" if share == "target" else "sinusoidal"
    bundle = make_bundle(norm=norm, activation=activation, tied_embeddings=share, positions=positions)
    convert(bundle, tmp_path / "out")
    proof = prove(bundle, tmp_path / "out", random_sources(bundle, 20, seed=1))
    assert (proof.identical, proof.sentences) == (20, 20)
    assert proof.tokens > 20
    assert proof.max_difference < 1e-4


@pytest.mark.parametrize("beam", [1, 4])
def test_it_translates_as_our_translator_does(tmp_path: Path, beam: int) -> None:
    import ctranslate2

    bundle = make_bundle()
    convert(bundle, tmp_path / "out")
    texts = ["abc", "jihgfedcba", "a", "ccccc", "badcaje", "eeh"]
    decode = DecodeConfig(
        beam=beam, alpha=0.0, max_length=12, extra_length=30, copy_untranslatable=False, retry_repetition=False
    )
    ours = Translator(bundle, decode=decode).translate(texts)
    theirs = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32").translate_batch(
        [list(text) for text in texts], beam_size=beam, length_penalty=0, max_decoding_length=12, min_decoding_length=0
    )
    assert ["".join(result.hypotheses[0]) for result in theirs] == ours


def test_a_wrong_weight_does_not_pass_the_proof(tmp_path: Path) -> None:
    bundle = make_bundle()
    convert(bundle, tmp_path / "out")
    with torch.no_grad():
        bundle.model.projection.table.add_(torch.randn(bundle.model.projection.table.shape) * 0.5)
    proof = prove(bundle, tmp_path / "out", random_sources(bundle, 20, seed=1))
    assert proof.identical < 20
    assert proof.max_difference > 0.01


@pytest.mark.parametrize("sizes", [{"d_k": 5}, {"d_v": 9}, {"d_model": 14, "heads": 4, "d_k": 4, "d_v": 4}])
def test_other_head_widths_are_refused(tmp_path: Path, sizes: dict[str, int]) -> None:
    with pytest.raises(ExportError, match="CTranslate2 has heads of width d_model / heads alone"):
        convert(make_bundle(**sizes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_part_that_the_format_does_not_know_is_refused(tmp_path: Path) -> None:
    bundle = make_bundle()
    bundle.model.get_submodule("decoder.layers.1.feed_forward").register_forward_hook(lambda *call: 2 * call[2])
    with pytest.raises(
        ExportError, match=r"decoder.layers.1.feed_forward has a forward hook, which CTranslate2 cannot"
    ):
        convert(bundle, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_vocabularies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="13 ids for the source and 14 for the target"):
        convert(make_bundle(target_vocab_size=14, tied_embeddings="target"), tmp_path / "out")


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="exists already"):
        convert(make_bundle(), tmp_path)


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ctranslate2>="):
        convert(make_bundle(), tmp_path / "out")
