"""The export to Hugging Face transformers, beside transformers."""

import json
import shutil
import unicodedata
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from allyouneed import Translator
from allyouneed.apps.convert.exports import export_bundle
from allyouneed.apps.convert.foreign_model import sines_first
from allyouneed.apps.convert.imports import import_checkpoint
from allyouneed.bundle import Bundle
from allyouneed.config import DataConfig, DecodeConfig, Recipe
from allyouneed.errors import CheckpointError, ConfigError, ExportError
from allyouneed.nn.position import sinusoids
from allyouneed.nn.weights import weights
from allyouneed.run import Validation
from allyouneed.run.run_bundle import model_card
from allyouneed.text.normalize import Normalization
from allyouneed.translator.generation import GenerationRequest
from bundles import make_bundle
from marian_checkpoints import ENGLISH, ITALIAN, TEXTS, write_checkpoint
from vocabularies import VOCABULARIES


@pytest.mark.parametrize(("activation", "tied"), [("relu", "all"), ("gelu", "none"), ("silu", "target")])
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
    recipe = Recipe(data=DataConfig(train="notes", license="mit"))
    card = model_card("mine", recipe, 3, bundle.model, validation, ("en", "it"))
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
        ({"norm": "pre"}, "only post-norm"),
        ({"positions": "learned"}, "sinusoidal positions"),
        ({"d_k": 5}, "of width"),
        ({"target_vocab_size": 14, "tied_embeddings": "target"}, "vocabulary .*each"),
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
    with pytest.raises(ExportError, match="5 symbols .*<unk>"):
        export_bundle(bundle, tmp_path / "out", to="huggingface")
    assert list(tmp_path.iterdir()) == []


def test_the_export_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    export_bundle(make_bundle(), tmp_path / "out", to="huggingface", sentences=1)
    assert capfd.readouterr() == ("", "")


def test_all_files_may_be_read_by_the_same_users(tmp_path: Path) -> None:
    export_bundle(make_bundle(), tmp_path / "out", to="huggingface", sentences=1)
    assert len({file.stat().st_mode for file in (tmp_path / "out").iterdir()}) == 1


@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_what_was_exported_comes_back_equal(tmp_path: Path, tied: str) -> None:
    bundle = replace(
        make_bundle(tied_embeddings=tied), normalization=Normalization(unicode="NFKC"), languages=("en", "pt-BR")
    )
    export_bundle(bundle, tmp_path / "marian", to="huggingface", sentences=1)
    import_checkpoint(tmp_path / "marian", tmp_path / "bundle")
    again = Bundle.load(tmp_path / "bundle")
    ours, imported = weights(bundle.model), weights(again.model)
    assert ours.keys() == imported.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(imported[name], tensor, rtol=0, atol=0)
    assert again.source_tokenizer.fingerprint() == bundle.source_tokenizer.fingerprint()
    assert (again.normalization, again.languages) == (bundle.normalization, bundle.languages)
    texts = ["abc", "ja", "ijabcdefg"]
    assert Translator(again, decode=bundle.decode).translate(texts) == Translator(bundle).translate(texts)


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Bundle]:
    """Make a folder like those of OPUS-MT, its model, and the bundle that it becomes."""
    folder = tmp_path_factory.mktemp("opus")
    model = write_checkpoint(folder / "checkpoint", tags=(">>ita<<", ">>fra<<"))
    return folder / "checkpoint", model, import_checkpoint(folder / "checkpoint", folder / "bundle")


def marian_tokenizer(folder: Path) -> Any:
    from transformers import MarianTokenizer

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
        return MarianTokenizer.from_pretrained(str(folder))


@torch.inference_mode()
def assert_equal_logits(model: Any, bundle: Bundle, texts: list[str]) -> None:
    for text in texts:
        source = torch.tensor([bundle.source_tokenizer.encode(text)])
        target = torch.tensor([bundle.target_tokenizer.encode("il fiume 7")[:-1]])
        expected = model(source, decoder_input_ids=target).logits
        torch.testing.assert_close(bundle.model(source, target), expected, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def generate(model: Any, bundle: Bundle, texts: list[str], **settings: Any) -> list[list[int]]:
    written = []
    for text in texts:
        (ids,) = model.generate(torch.tensor([bundle.source_tokenizer.encode(text)]), **settings).tolist()
        written.append(ids[1:])
    return written


def translate(bundle: Bundle, texts: list[str], **settings: Any) -> list[list[int]]:
    translator = Translator(bundle).using(**settings)
    requests = [GenerationRequest(bundle.source_tokenizer.encode(text), [], []) for text in texts]
    hypotheses, _ = translator._generator.generate(requests)
    return [[*best.ids, bundle.target_tokenizer.eos_id] for best, *_ in hypotheses]


def test_the_tokenizers_give_the_same_ids(opus: tuple[Path, Any, Bundle]) -> None:
    folder, _, bundle = opus
    tokenizer = marian_tokenizer(folder)
    for text in [*ENGLISH, *TEXTS, ">>ita<< the river", ">>fra<<the river", "the >>ita<< river"]:
        assert bundle.source_tokenizer.encode(text) == tokenizer(text).input_ids, text
    pad = tokenizer.pad_token_id
    for text in [*ITALIAN, *TEXTS]:
        assert bundle.target_tokenizer.encode(text) == [pad, *tokenizer(text_target=text).input_ids], text
        ids = bundle.target_tokenizer.encode(text)
        assert bundle.target_tokenizer.decode(ids).replace("<unk>", "").strip() == tokenizer.decode(
            ids, skip_special_tokens=True
        )


def test_logits_are_equal(opus: tuple[Path, Any, Bundle]) -> None:
    _, model, bundle = opus
    assert_equal_logits(model, bundle, TEXTS)


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("penalty", [0.6, 1.0])
@pytest.mark.parametrize("renormalize", [True, False])
def test_generate_and_translate_write_the_same_tokens(
    opus: tuple[Path, Any, Bundle], beam: int, penalty: float, renormalize: bool
) -> None:
    _, model, bundle = opus
    settings = {"length_penalty": penalty} if beam > 1 else {}
    expected = generate(model, bundle, TEXTS, num_beams=beam, renormalize_logits=renormalize, **settings)
    assert translate(bundle, TEXTS, beam=beam, alpha=penalty, renormalize_logits=renormalize) == expected


def test_a_translation_that_would_be_too_long_ends_as_generate_ends_it(opus: tuple[Path, Any, Bundle]) -> None:
    _, model, bundle = opus
    for beam in (1, 4):
        expected = generate(model, bundle, TEXTS, num_beams=beam, max_length=6)
        assert {len(ids) for ids in expected} == {5}
        assert translate(bundle, TEXTS, beam=beam, max_length=5) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"scale_embedding": False},
        {"tie_word_embeddings": False},
        {"share_encoder_decoder_embeddings": False},
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
        {"activation_function": "relu", "encoder_layers": 1, "decoder_layers": 3},
        {"activation_function": "gelu"},
    ],
    ids=str,
)
def test_models_of_other_shapes_give_the_same_logits_and_translations(tmp_path: Path, config: dict[str, Any]) -> None:
    model = write_checkpoint(tmp_path / "checkpoint", **config)
    import_checkpoint(tmp_path / "checkpoint", tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle")
    assert_equal_logits(model, bundle, TEXTS[:3])
    assert translate(bundle, TEXTS[:3]) == generate(model, bundle, TEXTS[:3])


def test_an_older_folder_has_a_pickle_of_float16_and_settings_of_generate_in_config_json(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    model = write_checkpoint(folder, half=True)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    table = json.loads((folder / "config.json").read_text())
    table |= json.loads((folder / "generation_config.json").read_text())
    (folder / "config.json").write_text(json.dumps(table))
    (folder / "generation_config.json").unlink()
    bundle = import_checkpoint(folder, tmp_path / "bundle")
    assert_equal_logits(model, bundle, TEXTS[:2])
    assert translate(bundle, TEXTS) == generate(model, bundle, TEXTS)


def test_the_shape_of_opus_mt_base(tmp_path: Path) -> None:
    """d_model 512, d_ff 2,048, 8 heads, 58,101 pieces; one layer on either side, as more would only take longer."""
    model = write_checkpoint(
        tmp_path / "checkpoint", size=58_101, d_model=512, encoder_ffn_dim=2048, decoder_ffn_dim=2048, encoder_layers=1,
        decoder_layers=1, encoder_attention_heads=8, decoder_attention_heads=8, max_position_embeddings=512,
        init_std=0.05, generation={"num_beams": 6, "max_length": 12},
    )  # fmt: skip
    import_checkpoint(tmp_path / "checkpoint", tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle")
    assert bundle.model.config.vocab_size == 58_101
    assert_equal_logits(model, bundle, TEXTS[:2])
    assert translate(bundle, TEXTS[:4]) == generate(model, bundle, TEXTS[:4])


def change(folder: Path, copy: Path, name: str, **values: Any) -> Path:
    shutil.copytree(folder, copy)
    table = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps({**table, **values}))
    return copy


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"decoder_ffn_dim": 64}, "ffn_dim; got 48 .*64"),
        ({"activation_function": "gelu_new"}, "activation_function .*; got 'gelu_new'"),
        ({"normalize_embedding": True}, "has normalize_embedding"),
        ({"encoder_layers": 3}, "lack model.encoder.layers.2"),
        ({"encoder_layers": 1}, "'model.encoder.layers.1"),
        ({"d_model": 64}, r"shape \(125, 64\); got \(125, 32\)"),
        ({"d_model": 10**9}, "d_model"),
        ({"max_position_embeddings": 2**20, "d_model": 2**16}, "max_length .*d_model"),
        ({"d_model": "many"}, "no model"),
        ({"vocab_size": 126}, "config.json .*vocab_size=126, .*125"),
        ({"pad_token_id": 7}, "token twice"),
        ({"pad_token_id": 10**6}, "<pad> .*125"),
        ({"eos_token_id": [0]}, r"config.json .*eos_token_id=\[0\]"),
        ({"decoder_start_token_id": None}, "decoder_start_token_id .*id"),
    ],
    ids=str,
)
def test_what_a_bundle_cannot_express_is_refused(
    opus_without_tags: Path, tmp_path: Path, values: dict[str, Any], why: str
) -> None:
    copy = change(opus_without_tags, tmp_path / "copy", "config.json", **values)
    with pytest.raises(CheckpointError, match=why):
        import_checkpoint(copy, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def opus_without_tags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "checkpoint"
    write_checkpoint(folder)
    return folder


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"do_sample": True}, "do_sample=True"),
        ({"repetition_penalty": 1.5}, "has repetition_penalty=1.5"),
        ({"min_new_tokens": 5}, "has min_new_tokens=5"),
        ({"bad_words_ids": [[5, 6]]}, "bad_words_ids .*several tokens"),
        ({"bad_words_ids": [[5]]}, "token 5; .*<pad> .*<unk>"),
        ({"bad_words_ids": 3}, "describes no model|bad_words_ids"),
        ({"num_beams": 10**9}, "beam"),
        ({"max_length": "x"}, "no model"),
    ],
    ids=str,
)
def test_a_search_that_has_no_equal_is_refused(
    opus_without_tags: Path, tmp_path: Path, values: dict[str, Any], why: str
) -> None:
    copy = change(opus_without_tags, tmp_path / "copy", "generation_config.json", **values)
    with pytest.raises(CheckpointError, match=why):
        import_checkpoint(copy, tmp_path / "out")


def test_a_number_of_new_tokens_goes_before_the_length(opus_without_tags: Path, tmp_path: Path) -> None:
    copy = change(opus_without_tags, tmp_path / "copy", "generation_config.json", max_new_tokens=7, max_length=20)
    decode = import_checkpoint(copy, tmp_path / "out").decode
    assert (decode.max_length, decode.extra_length) == (7, 7)


def test_a_language_that_is_no_tag_is_refused(opus_without_tags: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--source-language .*'en_US'"):
        import_checkpoint(opus_without_tags, tmp_path / "out", source_language="en_US")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("vocab.json", "[]", "JSON"),
        ("vocab.json", '{"a": 0, "b": 0}', "from 0 .*1"),
        ("vocab.json", '{"</s>": 0, "a": 1, "<pad>": 2}', "config.json has|the id of <pad>|no <unk>"),
        ("source.spm", "x", "SentencePiece"),
        ("target.spm", "", "SentencePiece"),
    ],
    ids=str,
)
def test_a_damaged_vocabulary_is_refused(
    opus_without_tags: Path, tmp_path: Path, name: str, content: str, why: str
) -> None:
    shutil.copytree(opus_without_tags, tmp_path / "copy")
    (tmp_path / "copy" / name).write_text(content)
    with pytest.raises(CheckpointError, match=why):
        import_checkpoint(tmp_path / "copy", tmp_path / "out")


@pytest.mark.parametrize("to", ["ctranslate2", "onnx", "huggingface", "html"])
def test_an_imported_model_is_exported(opus: tuple[Path, Any, Bundle], tmp_path: Path, to: str) -> None:
    _, _, bundle = opus
    proof = export_bundle(bundle, tmp_path / "out", to=to, precision="float32", sentences=8)
    assert proof.identical + proof.ties == proof.sentences
    assert proof.max_difference < 1e-3


def test_there_and_back_nothing_is_lost(opus: tuple[Path, Any, Bundle], tmp_path: Path) -> None:
    folder, _, bundle = opus
    export_bundle(bundle, tmp_path / "out", to="huggingface", sentences=2)
    tokenizer, original = marian_tokenizer(tmp_path / "out"), marian_tokenizer(folder)
    for text in [*ENGLISH[:50], *TEXTS, ">>ita<< the river"]:
        assert tokenizer(text).input_ids == original(text).input_ids
        assert tokenizer(text_target=text).input_ids == original(text_target=text).input_ids
    again = import_checkpoint(tmp_path / "out", tmp_path / "again")
    assert again.decode == bundle.decode
    assert again.languages == bundle.languages
    for name, tensor in weights(bundle.model).items():
        torch.testing.assert_close(weights(again.model)[name], tensor, rtol=0, atol=0)
