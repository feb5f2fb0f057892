"""The export to CTranslate2, beside CTranslate2."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from allyouneed.apps.convert.exports import export_bundle
from allyouneed.config import DecodeConfig
from allyouneed.nn import MultiHeadAttention
from allyouneed.translator import Translator
from bundles import make_bundle
from vocabularies import VOCABULARIES

OPTIONS: list[dict[str, Any]] = [
    {"positions": "rotary"},
    {"positions": "rotary", "d_model": 18, "heads": 6},  # heads of width 3, whose last number is not rotated
    {"query_key_norm": True},
    {"positions": "rotary", "query_key_norm": True},
]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("activation", "tied"), [("relu", "all"), ("gelu", "none"), ("silu", "target")])
def test_an_exported_model_translates_equally(tmp_path: Path, norm: str, activation: str, tied: str) -> None:
    positions = "learned" if tied == "target" else "sinusoidal"
    bundle = make_bundle(norm=norm, activation=activation, tied_embeddings=tied, positions=positions)
    proof = export_bundle(bundle, tmp_path / "out", to="ctranslate2", sentences=10)
    assert proof.identical + proof.ties == proof.sentences == 10
    assert proof.tokens > 20
    assert proof.max_difference < 1e-4


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())))
def test_rotary_positions_and_query_key_norm_translate_equally(
    tmp_path: Path, norm: str, options: dict[str, Any]
) -> None:
    proof = export_bundle(make_bundle(norm=norm, **options), tmp_path / "out", to="ctranslate2", sentences=10)
    assert proof.identical + proof.ties == proof.sentences == 10
    assert proof.max_difference < 1e-4


def test_queries_and_keys_near_zero_are_normalized_with_our_epsilon(tmp_path: Path) -> None:
    """Were it that of the other norms in CTranslate2's own default, 1e-6, these vectors would be √10 times as long."""
    bundle = make_bundle(query_key_norm=True)
    with torch.no_grad():
        for part in bundle.model.modules():
            if isinstance(part, MultiHeadAttention):
                for linear in (part.query, part.key):
                    linear.weight.mul_(1e-3)
                    linear.bias.mul_(1e-3)
    assert export_bundle(bundle, tmp_path / "out", to="ctranslate2", sentences=10).max_difference < 1e-4


@pytest.mark.parametrize("options", [{}, {"positions": "rotary", "query_key_norm": True}])
@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_rounded_weights_come_close(tmp_path: Path, precision: str, options: dict[str, Any]) -> None:
    bundle = make_bundle(d_model=64, d_ff=96, **options)
    before = [parameter.clone() for parameter in bundle.model.parameters()]
    proof = export_bundle(bundle, tmp_path / "out", to="ctranslate2", precision=precision, sentences=10)
    assert 1e-5 < proof.mean_difference < 0.1
    # CTranslate2 quantizes in the memory that it is handed, which must not be that of the model.
    assert all((old == new).all() for old, new in zip(before, bundle.model.parameters(), strict=True))


@pytest.mark.parametrize("kind", ["characters", "unigram", "codes", "words"])
@pytest.mark.parametrize("beam", [1, 4])
def test_the_folder_and_its_tokenizer_translate_as_our_translator_does(tmp_path: Path, kind: str, beam: int) -> None:
    import ctranslate2
    from tokenizers import Tokenizer as Backend

    vocabulary = VOCABULARIES[kind]()
    bundle = make_bundle(vocab_size=len(vocabulary), pad_id=vocabulary.pad_id)
    bundle = replace(bundle, source_tokenizer=vocabulary, target_tokenizer=vocabulary)
    export_bundle(bundle, tmp_path / "out", to="ctranslate2", sentences=1)
    texts = ["abc", "jihgfedcba", "a", "cc\tccc", "badc\x07aje", "eeh"]
    texts += ["cafe\u0301 the house", "q 日 qq"] * (kind != "characters")
    decode = DecodeConfig(
        beam=beam, alpha=0.0, max_length=12, extra_length=30, copy_untranslatable=False, retry_repetition=False
    )
    expected = Translator(bundle, decode=decode).translate(texts)
    tokenizer = Backend.from_file(str(tmp_path / "out/tokenizer.json"))
    translated = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32").translate_batch(
        [tokenizer.encode(text, add_special_tokens=False).tokens for text in texts],
        beam_size=beam, length_penalty=0, max_decoding_length=12, min_decoding_length=0,
    )  # fmt: skip
    names = tokenizer.get_vocab()
    ids = [[names[token] for token in result.hypotheses[0]] for result in translated]
    assert [tokenizer.decode(row) for row in ids] == expected
