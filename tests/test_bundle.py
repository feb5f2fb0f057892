import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save, save_file

import runs
from allyouneed import Recipe, fit, recipe_path
from allyouneed.bundle import Bundle, OtherDefinitionWarning, nn_digest
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import BundleError, ConfigError
from allyouneed.nn import Transformer
from allyouneed.nn.weights import weights
from allyouneed.text.backends import bpe_backend
from allyouneed.text.normalize import Normalization
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.translator import Translator
from allyouneed.translator.unread_bundle import UnreadBundle, parse_tensors
from bundles import make_bundle, strip_checksums


@pytest.fixture
def saved(saved: Path) -> Path:
    """Save a bundle without checksums, so that a changed file reaches the checks behind them."""
    strip_checksums(saved)
    return saved


def test_a_bundle_comes_back_whole(bundle: Bundle, saved: Path) -> None:
    loaded = Bundle.load(saved)
    assert loaded.model.config == bundle.model.config
    assert loaded.decode == bundle.decode
    assert loaded.card == bundle.card
    ids = torch.tensor([bundle.source_tokenizer.encode("abcj")])
    assert torch.equal(loaded.model(ids, ids), bundle.model(ids, ids))
    assert loaded.source_tokenizer.encode("jihg") == bundle.source_tokenizer.encode("jihg")


def test_it_keeps_the_form_of_its_text_and_one_of_an_earlier_version_has_that_of_the_defaults(
    bundle: Bundle, tmp_path: Path
) -> None:
    replace(bundle, normalization=Normalization(unicode="NFKC", strip_control=False)).save(tmp_path)
    strip_checksums(tmp_path)
    assert Bundle.load(tmp_path).normalization == Normalization(unicode="NFKC", strip_control=False)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["normalization"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert Bundle.load(tmp_path).normalization == Normalization(unicode="NFC", strip_control=True)


def test_it_is_the_files_the_docs_name(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "README.md", "SHA256SUMS", "config.json", "tokenizer.json", "weights.safetensors",
    }  # fmt: skip
    assert json.loads((tmp_path / "config.json").read_text())["format"] == 2


def test_a_shared_table_is_stored_once(bundle: Bundle, saved: Path) -> None:
    assert load_file(saved / "weights.safetensors").keys() == weights(bundle.model).keys()
    assert sum(tensor.numel() for tensor in load_file(saved / "weights.safetensors").values()) == (
        bundle.model.parameter_count()
    )


def test_paths_may_be_strings(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(str(tmp_path / "b"))
    assert Bundle.load(str(tmp_path / "b")).card == bundle.card
    recipe = Recipe.read(str(recipe_path(Path("dates"))))
    assert recipe.data.train == "dates:train"
    fit(runs.TINY, str(tmp_path / "run"))
    assert Recipe.read(str(tmp_path / "run/recipe.toml")) == runs.TINY


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_not_saved(value: float, tmp_path: Path) -> None:
    bundle = make_bundle()
    torch.nn.init.constant_(bundle.model.source_embedding.table, value)
    with pytest.raises(ConfigError, match=r"source_embedding\.table"):
        bundle.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_weights_of_another_precision_are_saved_as_float32(tmp_path: Path) -> None:
    bundle = make_bundle()
    bundle.model.bfloat16()
    bundle.save(tmp_path)
    assert Bundle.load(tmp_path).model.projection.table.equal(bundle.model.projection.table.float())


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "weights.safetensors", "README.md"])
def test_a_half_written_bundle_is_refused(saved: Path, missing: str) -> None:
    (saved / missing).unlink()
    with pytest.raises(BundleError, match=missing):
        Bundle.load(saved)


def test_a_missing_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nowhere"):
        Bundle.load(tmp_path / "nowhere")


def test_files_cut_short_are_refused(saved: Path) -> None:
    content = (saved / "weights.safetensors").read_bytes()
    (saved / "weights.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(BundleError, match=r"weights\.safetensors"):
        Bundle.load(saved)
    (saved / "config.json").write_text('{"format": 1, "mod')
    with pytest.raises(BundleError, match=r"config.json is not JSON"):
        Bundle.load(saved)
    (saved / "config.json").write_text('{"format":' + "[" * 100_000)
    with pytest.raises(BundleError, match=r"config\.json .*nested"):
        Bundle.load(saved)


def test_weights_of_another_model_are_refused(saved: Path) -> None:
    tensors = load_file(saved / "weights.safetensors")
    save_file(
        tensors | {"encoder.layers.0.attention_residual.norm.gain": torch.ones(5)},
        saved / "weights.safetensors",
    )
    with pytest.raises(BundleError, match=r"norm\.gain .*\(12,\); got \(5,\)"):
        Bundle.load(saved)
    del tensors["source_embedding.table"]
    save_file(tensors, saved / "weights.safetensors")
    with pytest.raises(BundleError, match=r"source_embedding\.table"):
        Bundle.load(saved)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_weights_of_another_dtype_are_refused(saved: Path, dtype: torch.dtype) -> None:
    tensors = load_file(saved / "weights.safetensors")
    tensors["encoder.layers.0.attention.query.weight"] = tensors["encoder.layers.0.attention.query.weight"].to(dtype)
    save_file(tensors, saved / "weights.safetensors")
    with pytest.raises(BundleError, match=r"attention\.query\.weight .*float32 \(F32\); got "):
        Bundle.load(saved)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(saved: Path, value: float) -> None:
    tensors = load_file(saved / "weights.safetensors")
    tensors["source_embedding.table"][3, 1] = value
    save_file(tensors, saved / "weights.safetensors")
    with pytest.raises(BundleError, match=r"source_embedding\.table"):
        Bundle.load(saved)


NAME = "decoder.layers.1.feed_forward.inner.weight"


@pytest.mark.parametrize("kind", ["missing", "more", "shape", "float64", "float16", "nan", "inf", "layers"])
def test_weights_that_are_wrong_are_refused_where_no_torch_reads_them(kind: str, saved: Path) -> None:
    tensors = load_file(saved / "weights.safetensors")
    weight = tensors.pop(NAME)
    if kind != "missing":
        tensors[NAME] = weight
    if kind == "more":
        tensors["more"] = weight.clone()
    if kind == "shape":
        tensors[NAME] = weight.T.contiguous()
    if kind.startswith("float"):
        tensors[NAME] = weight.to(getattr(torch, kind))
    if kind in ("nan", "inf"):
        weight[0, -1] = float(kind)
    if kind == "layers":
        tensors = {name: one for name, one in tensors.items() if not name.startswith("encoder.layers.1.")}
    save_file(tensors, saved / "weights.safetensors")
    with pytest.raises((BundleError, ConfigError), match="more" if kind == "more" else r"weight|encoder\.layers\.1"):
        Translator.load(saved, device="cpu")


def test_a_file_of_weights_read_without_torch_is_that_of_safetensors() -> None:
    tensors = {"a": torch.randn(3, 5), "b": torch.randn(7), "": torch.randn(1, 1)}
    read = parse_tensors(save(tensors, metadata={"made": "by hand"}))
    assert {name: torch.tensor(view.tolist()) for name, view in read.items()}.keys() == tensors.keys()
    for name, view in read.items():
        assert torch.equal(torch.tensor(view.tolist()), tensors[name])


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_a_damaged_file_of_weights_is_refused_or_has_whole_tensors(data: st.DataObject) -> None:
    content = bytearray(save({"a": torch.randn(3, 5), "b": torch.randn(7)}))
    for _ in range(data.draw(st.integers(0, 2))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    try:
        tensors = parse_tensors(bytes(content))
    except ConfigError:
        return
    for view in tensors.values():
        assert view.nbytes == 4 * math.prod(view.shape or ())
        assert len(view.tobytes()) == view.nbytes


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"encoder_layers": 1000}, "encoder .*1000 layers; .*2"),
        ({"decoder_layers": 999}, "decoder .*999 layers; .*3"),
        ({"d_model": 48, "d_ff": 6_000}, r"shape \(.*; got \("),
        ({"d_model": 60_000, "d_ff": 250_000}, "would take|shape"),
        ({"d_model": 65_536, "heads": 1, "max_length": 2**20}, "max_length .*d_model"),
    ],
)
def test_a_model_that_the_weights_are_too_few_for_is_never_built(
    saved: Path, sizes: dict[str, int], message: str
) -> None:
    """The largest would take 250 GB."""
    config = json.loads((saved / "config.json").read_text())
    config["model"] |= sizes
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(BundleError, match=message):
        Bundle.load(saved)


def test_a_tokenizer_that_does_not_frame_its_text_is_refused(saved: Path) -> None:
    tokenizer = json.loads((saved / "tokenizer.json").read_text())
    (saved / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": None}))
    with pytest.raises(BundleError, match=r"tokenizer\.json .*\[\d+, \d+\] .*\[\]"):
        Bundle.load(saved)


def test_a_tokenizer_that_pads_otherwise_is_refused(saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text())
    config["model"]["pad_id"] = 0
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(BundleError, match="<pad> .*12 .*pad_id=0"):
        Bundle.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": 3},
            "format 3; .*format 2",
        ),
        ({"model": {"d_modle": 3}}, 'unknown key "d_modle"'),
        ({"model": None}, "table .*settings"),
        ({"decode": {"beam": 0}}, "beam .*1"),
        ({"normalization": {"unicode": "NFD"}}, "unicode"),
        (
            {"languages": {"source": "en\n\x1b[31mRED"}},
            "languages, .*-; got {'source",
        ),
        (
            {"learned_from": {"longest_source": math.inf, "copies": {}}},
            "longest_source .*number; .*inf",
        ),
        ({"learned_from": {"longest_source": -5, "copies": {}}}, "longest_source .*0; got -5"),
        ({"learned_from": {"longest_source": 5, "copies": 5}}, "learned_from, .*`allyouneed train`"),
        (
            {"learned_from": {"longest_source": 5, "copies": {}, "letter_case": {"sources": 1}}},
            "`allyouneed",
        ),
        ({"learned_from": {"longest_source": 5, "copies": {"alone": {"urls": 1}}}}, "`allyouneed train`"),
        (
            {"learned_from": {"longest_source": 5, "copies": {"alone": {"urls": {"seen": -1, "same": 0}}}}},
            "copies .*0; got -1",
        ),
    ],
)
def test_a_config_that_cannot_be_is_refused(saved: Path, change: dict[str, object], message: str) -> None:
    config = json.loads((saved / "config.json").read_text()) | change
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        ConfigError if change.keys() & {"model", "decode", "normalization"} else BundleError, match=message
    ):
        Bundle.load(saved)


def test_a_vocabulary_of_another_model_is_refused(saved: Path) -> None:
    from allyouneed.text.tokenizer import Tokenizer

    Tokenizer.characters("abc").save(saved / "tokenizer.json")
    with pytest.raises(BundleError, match=r"tokenizer\.json .*6 ids .*13"):
        Bundle.load(saved)


def test_a_save_that_fails_leaves_the_earlier_bundle(
    bundle: Bundle, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    from allyouneed.errors import OutputError

    before = (saved / "weights.safetensors").read_bytes()
    torch.nn.init.zeros_(bundle.model.source_embedding.table)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="disk"):
        bundle.save(saved)
    assert (saved / "weights.safetensors").read_bytes() == before
    assert not list(saved.glob(".*partial"))


def test_a_bundle_of_two_vocabularies_reads_with_one_and_writes_with_the_other(
    config: ModelConfig, tmp_path: Path
) -> None:
    source, target = (
        Tokenizer(bpe_backend(["aa bb"], vocab_size=261)),
        Tokenizer(bpe_backend(["xx yy zz"], vocab_size=262)),
    )
    sizes = replace(config, vocab_size=len(source), target_vocab_size=len(target), tied_embeddings="target")
    Bundle(Transformer(sizes), source, target, DecodeConfig()).save(tmp_path)
    bundle = Bundle.load(tmp_path)
    assert bundle.source_tokenizer.encode("aa") == source.encode("aa")
    assert bundle.target_tokenizer.encode("xx") == target.encode("xx")
    assert isinstance(Translator(bundle)("aa bb"), str)
    (tmp_path / "tokenizer.target.json").unlink()
    with pytest.raises(BundleError, match=r"tokenizer\.target\.json"):
        Bundle.load(tmp_path)


def test_a_model_that_was_made_with_another_definition_says_so(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Bundle.load(saved).definition == nn_digest()
    Translator.load(saved, device="cpu")  # no warning, which would be an error
    other = replace(Bundle.load(saved), definition="another")
    other.save(saved)
    assert Bundle.load(saved).definition == "another"
    with pytest.warns(OtherDefinitionWarning, match="another `nn/`"):
        Translator.load(saved, device="cpu")
    config = json.loads((saved / "config.json").read_text())
    del config["definition"]
    (saved / "config.json").write_text(json.dumps(config))
    strip_checksums(saved)
    assert Bundle.load(saved).definition == ""  # of an earlier version, which did not record it
    Translator.load(saved, device="cpu")


def build_plainly(config: ModelConfig) -> Transformer:
    """Stand for a function of a user's own."""
    return Transformer(config)


def test_a_model_of_a_users_own_function_is_trained_and_loaded_with_that_function_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    made = fit(runs.TINY, folder, build_model=build_plainly)
    assert made.builder == f"{__name__}:build_plainly"
    assert json.loads((folder / "config.json").read_text())["builder"] == made.builder
    for load in (Bundle.load, UnreadBundle.load, Translator.load):
        with pytest.raises(BundleError, match=made.builder):
            load(folder)
    with pytest.raises(ConfigError, match=made.builder):
        fit(runs.TINY, folder, resume=True)
    again = fit(runs.TINY, folder, build_model=build_plainly, resume=True)
    for before, after in zip(made.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(before, after)
    translator = Translator.load(folder, build_model=build_plainly)
    assert translator("zz") == Translator(made)("zz")
    starting = replace(runs.TINY, train=replace(runs.TINY.train, init_from=str(folder)))
    assert fit(starting, tmp_path / "next", build_model=build_plainly).builder == made.builder
    with pytest.raises(BundleError, match=made.builder):
        fit(starting, tmp_path / "without")
