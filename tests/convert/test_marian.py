"""The import of Marian's own files, beside transformers and CTranslate2's converter."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from allyouneed.apps.convert.imports import import_checkpoint
from allyouneed.bundle import Bundle
from allyouneed.errors import CheckpointError
from allyouneed.translator import Translator
from marian_checkpoints import ENGLISH, ITALIAN, TEXTS, train_spm, write_checkpoint
from marian_npz import SETTINGS, npz_arrays, write_npz_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("marian")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    model = write_checkpoint(folder / "checkpoint")
    with torch.no_grad():
        model.model.shared.weight[-1] = 0.0  # Marian's first vector
        model.final_logits_bias[0, -1] = -100.0
    write_npz_folder(folder / "npz", folder / "checkpoint", model)
    return model


@pytest.fixture(scope="module")
def bundle(folder: Path, model: Any) -> Bundle:
    return import_checkpoint(folder / "npz", folder / "bundle")


def damaged(folder: Path, tmp_path: Path, model: Any, settings: str = SETTINGS, **arrays: Any) -> Path:
    """Copy the folder, with other settings and arrays in its .npz."""
    shutil.copytree(folder / "npz", tmp_path / "copy")
    np.savez(tmp_path / "copy/model.npz", **{**npz_arrays(model, settings), **arrays})
    return tmp_path / "copy"


@torch.inference_mode()
def test_logits_are_those_of_the_converted_model(model: Any, bundle: Bundle) -> None:
    for text in TEXTS:
        source = torch.tensor([bundle.source_tokenizer.encode(text)])
        target = torch.tensor([bundle.target_tokenizer.encode("il fiume 7")[:-1]])
        expected = model(source, decoder_input_ids=target).logits
        torch.testing.assert_close(bundle.model(source, target), expected, rtol=1e-4, atol=1e-4)


def test_characters_without_width_do_not_reach_an_imported_model(bundle: Bundle) -> None:
    translator = Translator(bundle)

    def read(text: str) -> list[list[int]]:
        return [segment.request.source for segment in translator.split([text]).segments]

    assert read("the c\u00adat \u200bse\u200bes\u2060 the \ufeffdog") == read("the cat sees the dog")
    assert read("the cat sees the dog") != read("the cat sees the")


def test_the_search_is_that_of_decoder_yml(bundle: Bundle) -> None:
    decode = bundle.decode
    assert (decode.beam, decode.alpha, decode.length_penalty, decode.length_ratio) == (6, 1.0, "plain", 2.5)
    assert decode.ban_unknown


def test_it_translates_as_ctranslate2_does_from_the_same_files(folder: Path, model: Any, bundle: Bundle) -> None:
    import ctranslate2
    from ctranslate2.converters import MarianConverter

    files = folder / "npz"
    MarianConverter(str(files / "model.npz"), [str(files / "opus.vocab.yml")] * 2).convert(str(folder / "ct2"))
    other = ctranslate2.Translator(str(folder / "ct2"), device="cpu")
    names = bundle.source_tokenizer.names()
    translator = Translator(bundle).using(beam=4, alpha=0.0, ban_unknown=False, length_ratio=0.0, extra_length=30)
    for text in ENGLISH[:10]:
        tokens = [names[i] for i in bundle.source_tokenizer.content(bundle.source_tokenizer.encode(text))]
        result = other.translate_batch([tokens], beam_size=4, length_penalty=0, max_decoding_length=30)
        (translation,) = translator.translations([text])
        written = "".join(result[0].hypotheses[0]).replace("▁", " ").strip()
        assert translation.text == written


def test_sentencepiece_models_alone_are_a_vocabulary_with_their_ids(folder: Path, tmp_path: Path, model: Any) -> None:
    """As Marian trains them itself: the end is id 0, unknown text id 1, and there is no start."""
    train_spm([*ENGLISH, *ITALIAN], tmp_path / "vocab.spm", 100, bos_id=-1, eos_id=0, unk_id=1)
    from sentencepiece import SentencePieceProcessor

    size = SentencePieceProcessor(model_file=str(tmp_path / "vocab.spm")).get_piece_size()
    arrays = npz_arrays(model)
    arrays["Wemb"] = arrays["Wemb"][:size]
    arrays["decoder_ff_logit_out_b"] = arrays["decoder_ff_logit_out_b"][:, :size]
    np.savez(tmp_path / "model.npz", **arrays)  # type: ignore[arg-type]
    bundle = import_checkpoint(tmp_path, tmp_path / "bundle")
    ids = SentencePieceProcessor(model_file=str(tmp_path / "vocab.spm")).encode(ENGLISH[0])
    assert bundle.source_tokenizer.encode(ENGLISH[0]) == [*ids, 0]
    assert bundle.target_tokenizer.encode(ENGLISH[0]) == [size, *ids, 0]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("type: transformer", "type: s2s", "type='s2s'; .*'transformer'"),
        ("postprocess: dan", "postprocess: da", "has transformer-postprocess='da'"),
        ("self-attention", "average-attention", "has transformer-decoder-autoreg='average-attention'"),
        ("train-position-embeddings: false", "train-position-embeddings: true", "train-position-embeddings=True"),
        ("{activation}", "gelu", "activation .*got 'gelu'"),
        ("enc-depth: {encoder_layers}", "enc-depth: 3", "lack encoder_l3_self_Wq"),
        ("enc-depth: {encoder_layers}", "enc-depth: 1", "'encoder_l2_"),
        ("dim-emb: {d_model}", "dim-emb: 64", "have shape"),
        ("dim-emb: {d_model}", "dim-emb: [1]", "describes .*bundle"),
        ("dim-emb: {d_model}", "", "describes .*bundle"),
        ("right-left: false", "a: &a [1]\nb: *a", "has aliases"),
        ("right-left: false", "a: !!python/object:os.system {{}}", "YAML"),
        ("right-left: false", "a: " + "[" * 5000, "aliases .*nesting"),
        ("right-left: false", "a" * 70_000, "65,536 bytes"),
    ],
)
def test_what_a_bundle_cannot_express_is_refused(
    folder: Path, model: Any, tmp_path: Path, old: str, new: str, why: str
) -> None:
    assert old in SETTINGS
    with pytest.raises(CheckpointError, match=why.replace("[", r"\[")):
        import_checkpoint(damaged(folder, tmp_path, model, SETTINGS.replace(old, new)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unknown_arrays_are_refused(folder: Path, model: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="'Wpos'"):
        import_checkpoint(damaged(folder, tmp_path, model, Wpos=np.zeros(3, np.float32)), tmp_path / "out")


def test_two_weight_files_are_refused_unless_one_is_model_npz(folder: Path, model: Any, tmp_path: Path) -> None:
    copy = damaged(folder, tmp_path, model)
    shutil.copy(copy / "model.npz", copy / "a.npz")
    import_checkpoint(copy, tmp_path / "out")
    (copy / "model.npz").rename(copy / "b.npz")
    with pytest.raises(CheckpointError, match=r"\*\.npz; .*2"):
        import_checkpoint(copy, tmp_path / "again")


def test_a_word_penalty_is_refused(folder: Path, model: Any, tmp_path: Path) -> None:
    copy = damaged(folder, tmp_path, model)
    (copy / "decoder.yml").write_text("word-penalty: 0.5\n")
    with pytest.raises(CheckpointError, match="word-penalty"):
        import_checkpoint(copy, tmp_path / "out")


def test_without_a_bias_the_token_that_marian_does_not_have_has_no_probability(
    folder: Path, tmp_path: Path, model: Any
) -> None:
    copy = damaged(folder, tmp_path, model)
    arrays = dict(np.load(copy / "model.npz"))
    del arrays["decoder_ff_logit_out_b"]
    np.savez(copy / "model.npz", **arrays)
    bundle = import_checkpoint(copy, tmp_path / "out")
    with torch.inference_mode():
        source = torch.tensor([bundle.source_tokenizer.encode("a")])
        assert (
            bundle.model(source, torch.tensor([[bundle.target_tokenizer.sos_id]])).softmax(-1)[
                0, 0, bundle.target_tokenizer.pad_id
            ]
            < 1e-30
        )
