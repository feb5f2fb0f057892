"""The export to Hugging Face transformers, beside transformers."""

import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from allyouneed import Translator
from allyouneed.apps.convert.exports import export_bundle
from allyouneed.apps.convert.foreign_model import sines_first
from allyouneed.apps.convert.imports import import_checkpoint
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.errors import ExportError
from allyouneed.nn.position import sinusoids
from allyouneed.run import Validation
from allyouneed.run.model_card import model_card
from bundles import make_bundle
from vocabularies import VOCABULARIES


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_generate_translates_equally(tmp_path: Path, activation: str, tied: str) -> None:
    bundle = make_bundle(activation=activation, tied_embeddings=tied)
    proof = export_bundle(bundle, tmp_path / "out", to="huggingface", sentences=5)
    assert proof.identical + proof.ties == proof.sentences == 5
    assert proof.max_difference < 1e-4


def test_a_bundle_of_greedy_search_is_exported_too(tmp_path: Path) -> None:
    bundle = replace(make_bundle(), decode=DecodeConfig(beam=1))
    assert export_bundle(bundle, tmp_path / "out", to="huggingface", sentences=5).beams == (1,)


@pytest.mark.parametrize(
    "rules", [{"min_length": 14}, {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 2, "min_length": 20}], ids=str
)
def test_generate_keeps_the_rules_of_the_search(tmp_path: Path, rules: dict[str, Any]) -> None:
    bundle = replace(make_bundle(), decode=DecodeConfig(beam=1, max_length=25, **rules))
    export_bundle(bundle, tmp_path / "out", to="huggingface", sentences=3)
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ours = Translator(bundle).using(copy_untranslatable=False, retry_repetition=False)
    for text in ("abc", "jihgf", "aabbccdd", "e"):
        ids = model.generate(**tokenizer([text], return_tensors="pt", return_token_type_ids=False))
        assert tokenizer.batch_decode(ids, skip_special_tokens=True) == ours.translate([text])
    import_checkpoint(tmp_path / "out", tmp_path / "again")
    again = Bundle.load(tmp_path / "again").decode
    assert {name: getattr(again, name) for name in rules} == rules


def test_the_permutation_gives_marians_positions() -> None:
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    positions = MarianSinusoidalPositionalEmbedding(30, 16)
    torch.testing.assert_close(positions.create_weight(), sinusoids(30, 16)[:, sines_first(16)], rtol=0, atol=1e-6)


def test_the_tokenizer_normalizes_and_frames_as_ours(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    bundle = make_bundle()
    export_bundle(bundle, tmp_path / "out", to="huggingface", sentences=1)
    tokenizer = AutoTokenizer.from_pretrained(str(tmp_path / "out"))
    for text in ("abc", "ja", "a\u200db\x07c".replace("\u200d", "")):
        assert tokenizer(text).input_ids == bundle.source_tokenizer.encode(bundle.normalization(text))
    assert tokenizer.decode(tokenizer("abcj").input_ids, skip_special_tokens=True) == "abcj"
    assert tokenizer.backend_tokenizer.normalizer.normalize_str("e\u0301\x07\n") == unicodedata.normalize("NFC", "é ")


def test_the_card_has_the_metadata_of_the_hub(tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    bundle = make_bundle()
    validation = Validation(step=7, loss=None, learning_rate=0.1, valid_loss=None, accuracy=None)
    card = model_card("mine", bundle.model, validation, pairs=3, languages=("en", "it"), license="mit", data=["notes"])
    export_bundle(replace(bundle, card=card), tmp_path / "out", to="huggingface", sentences=1)
    exported = ModelCard.load(tmp_path / "out/README.md")
    assert exported.data.to_dict() == {
        "language": ["en", "it"], "license": "mit", "library_name": "transformers", "pipeline_tag": "translation",
    }  # fmt: skip
    assert exported.text.startswith("\n# mine\n")
    assert "MarianMTModel.from_pretrained" in exported.text
    assert "allyouneed import" not in exported.text
    export_bundle(bundle, tmp_path / "bare", to="huggingface", sentences=1)
    assert ModelCard.load(tmp_path / "bare/README.md").data.library_name == "transformers"


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"norm": "pre"}, "post-norm alone"),
        ({"positions": "learned"}, "sinusoidal positions alone"),
        ({"d_k": 5}, "heads of width"),
        ({"target_vocab_size": 14, "tied_embeddings": "target"}, "a vocabulary for each side"),
    ],
)
def test_what_marian_cannot_express_is_refused(tmp_path: Path, sizes: dict[str, object], reason: str) -> None:
    with pytest.raises(ExportError, match=reason):
        export_bundle(make_bundle(**sizes), tmp_path / "out", to="huggingface")
    assert not (tmp_path / "out").exists()


def test_symbols_that_stand_for_unknown_are_refused(tmp_path: Path) -> None:
    vocabulary = VOCABULARIES["codes"]()
    bundle = make_bundle(vocab_size=len(vocabulary), pad_id=vocabulary.pad_id)
    bundle = replace(bundle, source_tokenizer=vocabulary, target_tokenizer=vocabulary)
    with pytest.raises(ExportError, match="5 symbols of the vocabulary's merges stand for <unk>"):
        export_bundle(bundle, tmp_path / "out", to="huggingface")
    assert list(tmp_path.iterdir()) == []


def test_the_export_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    export_bundle(make_bundle(), tmp_path / "out", to="huggingface", sentences=1)
    assert capfd.readouterr() == ("", "")


def test_all_files_may_be_read_by_the_same_users(tmp_path: Path) -> None:
    export_bundle(make_bundle(), tmp_path / "out", to="huggingface", sentences=1)
    assert len({file.stat().st_mode for file in (tmp_path / "out").iterdir()}) == 1
