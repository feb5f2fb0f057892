"""What all exports have in common: refusals, the proof, and that nothing unproven is left behind."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from allyouneed.apps.convert import ctranslate2
from allyouneed.apps.convert.ctranslate2 import CTranslate2Folder
from allyouneed.apps.convert.exports import (
    FORMATS,
    ConvertedModel,
    ExportPrecision,
    banned_ids,
    export_bundle,
    prove,
    random_sources,
)
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig
from allyouneed.config.export_limits import describe_exports, exportable, unexpressed_settings
from allyouneed.errors import ConfigError, ExportError, MissingExtraError, OutputError
from allyouneed.text.sentencepiece import SentencePieceModel, make_tokenizer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.tokenizer_adaptation import adapt_tokenizer
from bundles import make_bundle
from foreign_tokenizers import foreign_tokenizers
from marian_checkpoints import ENGLISH, train_spm
from vocabularies import VOCABULARIES

LIBRARIES = {
    "ctranslate2": "ctranslate2",
    "onnx": "onnxruntime",
    "huggingface": "transformers",
    "html": "py_mini_racer",
}


def test_the_proof_is_written_beside_the_export(tmp_path: Path) -> None:
    bundle = replace(make_bundle(), probes=("abc", "jj"))
    proof = export_bundle(bundle, str(tmp_path / "out"), to="ctranslate2", sentences=3)
    stored = json.loads((tmp_path / "out/proof.json").read_text())
    assert stored["sentences"] == proof.sentences == 5
    assert stored["beams"] == [1, 4]


def test_a_wrong_weight_does_not_pass_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = ctranslate2.write_ctranslate2

    def write_other(bundle: Bundle, folder: Path, precision: ExportPrecision) -> None:
        write(replace(bundle, model=make_bundle().model), folder, precision)

    monkeypatch.setattr(ctranslate2, "write_ctranslate2", write_other)
    with pytest.raises(ExportError, match=r"CTranslate2 .*\d+ of 10"):
        export_bundle(make_bundle(), tmp_path / "out", to="ctranslate2", sentences=10)
    assert not (tmp_path / "out").exists()


def test_an_inverted_beam_does_not_pass(tmp_path: Path) -> None:
    bundle = make_bundle()

    class GreedyAlone(CTranslate2Folder):
        """The fault: the beam is ignored."""

        def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
            return super().translate(source, beam=1, max_length=max_length)

    with torch.no_grad():  # a flat model, where a beam finds what greedy search does not
        bundle.model.projection.table.mul_(0.3)
    export_bundle(bundle, tmp_path / "flat", to="ctranslate2", sentences=1)
    sources = random_sources(bundle, 30, seed=2)
    assert prove(bundle, CTranslate2Folder(tmp_path / "flat", bundle), sources).passed
    assert not prove(bundle, GreedyAlone(tmp_path / "flat", bundle), sources).passed


class Fixed:
    """A converted model that translates every source into the same ids, with the right probabilities."""

    def __init__(self, bundle: Bundle, ids: list[int], probabilities: Tensor) -> None:
        self._bundle, self._ids, self._probabilities = bundle, ids, probabilities

    def translate(self, source: list[int], *, beam: int, max_length: int) -> list[int]:
        return self._ids if beam > 1 else [int(self._probabilities.argmax())] * max_length

    def log_probabilities(self, source: list[int], target: list[int]) -> list[float]:
        gains: list[float] = self._probabilities[target[1:]].log().tolist()
        return gains


def test_a_program_may_prefer_what_is_cut_off_to_what_ended_but_only_if_it_is_more_likely() -> None:
    """Every step writes a with 0.4, b with 0.3 and ends with 0.05, and 3 tokens are the most: aaa has 0.064."""
    bundle = make_bundle(projection_bias=True, max_length=4)
    a, b = bundle.target_tokenizer.encode("ab")[1:3]
    banned = list(banned_ids(bundle))
    probabilities = torch.full((len(bundle.target_tokenizer),), 0.25 / (len(bundle.target_tokenizer) - 3 - len(banned)))
    probabilities[[a, b, bundle.target_tokenizer.eos_id]] = torch.tensor([0.4, 0.3, 0.05])
    probabilities[banned] = 1e-30
    with torch.no_grad():
        bundle.model.projection.table.zero_()
        bundle.model.projection.bias.copy_(probabilities.log())  # type: ignore[union-attr]
    sources = random_sources(bundle, 3, seed=0)
    assert prove(bundle, Fixed(bundle, [], probabilities), sources).passed
    assert prove(bundle, Fixed(bundle, [a, a, a], probabilities), sources).passed
    assert prove(bundle, Fixed(bundle, [b, b, b], probabilities), sources).identical == 0  # 0.027 is less than 0.05


@pytest.mark.parametrize("to", FORMATS)
def test_a_missing_library_is_named(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, LIBRARIES[to], None)
    with pytest.raises(MissingExtraError, match=rf"'allyouneed\[{to}\]'"):
        export_bundle(make_bundle(), tmp_path / "out", to=to)


def test_a_part_that_no_format_knows_is_refused(tmp_path: Path) -> None:
    bundle = make_bundle()
    bundle.model.get_submodule("decoder.layers.1.feed_forward").register_forward_hook(lambda *call: 2 * call[2])
    with pytest.raises(ExportError, match="CTranslate2 translated"):
        export_bundle(bundle, tmp_path / "out", to="ctranslate2")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="already exists"):
        export_bundle(make_bundle(), tmp_path, to="ctranslate2")


def test_a_link_to_nothing_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nothing")
    with pytest.raises(OutputError, match="already exists"):
        export_bundle(make_bundle(), tmp_path / "out", to="ctranslate2")


def test_the_folder_appears_once_the_proof_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, out = ctranslate2.CTranslate2Folder, tmp_path / "out"

    def load_while_locked(folder: Path, bundle: Bundle) -> ConvertedModel:
        assert not out.exists()
        with pytest.raises(OutputError, match="another process"):
            export_bundle(make_bundle(), out, to="html")
        return load(folder, bundle)

    monkeypatch.setattr(ctranslate2, "CTranslate2Folder", load_while_locked)
    killed = tmp_path / ".out.partial"
    killed.mkdir()
    (killed / "half").touch()
    export_bundle(make_bundle(), out, to="ctranslate2", sentences=1)
    assert list(tmp_path.iterdir()) == [out]
    assert (out / "proof.json").exists()
    assert not (out / "half").exists()


def test_a_probe_that_the_vocabulary_cannot_spell_is_left_out(tmp_path: Path) -> None:
    bundle = replace(make_bundle(), probes=("a!", "abc", "a" * 100))
    assert export_bundle(bundle, tmp_path / "out", to="ctranslate2", sentences=1).sentences == 2


@pytest.mark.parametrize("to", FORMATS)
def test_the_shortest_max_length_is_exported(to: str, tmp_path: Path) -> None:
    bundle = make_bundle(max_length=3, encoder_layers=1, decoder_layers=1)
    assert export_bundle(bundle, tmp_path / "out", to=to, sentences=2).identical == 2
    with pytest.raises(ExportError, match="model.max_length = 2"):
        export_bundle(make_bundle(max_length=2), tmp_path / "other", to=to)


def test_a_comparison_without_sentences_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="sentences .*got 0"):
        export_bundle(make_bundle(), tmp_path / "out", to="html", sentences=0)


def test_a_precision_that_the_format_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="float32.*'int8'"):
        export_bundle(make_bundle(), tmp_path / "out", to="onnx", precision="int8")


def test_settings_of_the_search_that_an_export_does_not_keep_are_named(tmp_path: Path) -> None:
    decode = DecodeConfig(min_length=3, no_repeat_ngram_size=2, repetition_penalty=1.5, sample=True)
    bundle = replace(make_bundle(), decode=decode)
    tokenizer, penalty, sample = bundle.target_tokenizer, "repetition_penalty=1.5", "sample=True"
    for to in ("huggingface", "html"):
        assert unexpressed_settings(decode, to, tokenizer) == (penalty, sample)
    for to in ("ctranslate2", "onnx"):
        assert unexpressed_settings(decode, to, tokenizer) == (
            "min_length=3",
            "no_repeat_ngram_size=2",
            penalty,
            sample,
        )
    for to in FORMATS:
        assert unexpressed_settings(DecodeConfig(), to, tokenizer) == ()
    assert export_bundle(bundle, tmp_path / "out", to="huggingface", sentences=1).unexpressed_settings == (
        penalty,
        sample,
    )
    assert json.loads((tmp_path / "out/proof.json").read_text())["unexpressed_settings"] == [penalty, sample]


def test_a_page_replaces_unknown_characters_and_refuses_to_search_otherwise_than_the_bundle(tmp_path: Path) -> None:
    characters, words = (Tokenizer.characters("ab", unknown=True), VOCABULARIES["words"]())
    replaces = DecodeConfig(replace_unknown=True)
    assert unexpressed_settings(replaces, "html", characters) == ()
    assert unexpressed_settings(replaces, "html", words) == ("replace_unknown=True",)
    bundle = replace(make_bundle(), decode=DecodeConfig(sample=True))
    with pytest.raises(ExportError, match=f"{tmp_path / 'out'} --to html decode.sample=false"):
        export_bundle(bundle, tmp_path / "out", to="html")
    assert export_bundle(bundle, tmp_path / "out", to="html", sentences=1, decode={"sample": False}).passed


def test_every_config_says_where_it_can_go() -> None:
    reasons = exportable(make_bundle(norm="pre", d_k=5).model.config)
    assert list(reasons) == list(FORMATS)
    assert reasons["onnx"] == ""
    assert "post-norm" in reasons["huggingface"]
    assert "d_k=5" in reasons["ctranslate2"]


def test_formats_without_an_option_of_the_model_name_it() -> None:
    rotary, normed = (
        exportable(make_bundle(**sizes).model.config) for sizes in ({"positions": "rotary"}, {"query_key_norm": True})
    )
    assert 'model.positions="rotary"' in rotary["huggingface"]
    assert "model.query_key_norm=true" in normed["huggingface"]
    assert {limits[name] for limits in (rotary, normed) for name in ("onnx", "html")} == {""}
    assert rotary["ctranslate2"] == normed["ctranslate2"] == ""
    both = exportable(make_bundle(positions="sinusoidal-rotary").model.config)
    assert "sinusoidal-rotary" in both["ctranslate2"]
    assert both["onnx"] == both["html"] == ""


def test_a_run_says_in_a_line_which_formats_are_possible() -> None:
    assert describe_exports(make_bundle().model.config) == "ctranslate2, onnx, huggingface, html"
    limited = describe_exports(make_bundle(norm="pre").model.config)
    assert limited.startswith("ctranslate2, onnx, html; not huggingface: ")
    assert limited.endswith('model.norm="pre"')


@pytest.mark.parametrize(
    ("kind", "to", "why"),
    [
        ("codes", "huggingface", "<unk>"),
        ("foreign words", "html", " StripAccents"),
    ],
)
def test_a_run_knows_which_formats_its_vocabulary_has(kind: str, to: str, why: str, tmp_path: Path) -> None:
    if kind == "foreign words":
        tokenizer = Tokenizer.from_json(adapt_tokenizer(foreign_tokenizers()["words"].to_str())[0])
    else:
        tokenizer = VOCABULARIES[kind]()
    bundle = make_bundle(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
    bundle = replace(bundle, source_tokenizer=tokenizer, target_tokenizer=tokenizer)
    reasons = exportable(bundle.model.config, (tokenizer, tokenizer))
    assert [name for name, reason in reasons.items() if reason] == [to]
    assert why in reasons[to]
    with pytest.raises(ExportError) as refusal:
        export_bundle(bundle, tmp_path / "out", to=to)
    assert str(refusal.value) == reasons[to]


def test_merges_of_sentencepiece_are_not_written_back(tmp_path: Path) -> None:
    train_spm(ENGLISH, tmp_path / "a.spm", 120, model_type="bpe")
    model = SentencePieceModel.load(tmp_path / "a.spm")
    tokenizer = make_tokenizer(model, ["<eos>", "<unk>", *(piece for piece, _ in model.pieces), "<pad>"], start=None)
    config = make_bundle(vocab_size=len(tokenizer), pad_id=tokenizer.pad_id).model.config
    assert "type BPE" in exportable(config, (tokenizer, tokenizer))["huggingface"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError
    from transformers import MarianMTModel

    def fail(self: MarianMTModel, folder: str) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(MarianMTModel, "save_pretrained", fail)
    with pytest.raises(OutputError, match="No space"):
        export_bundle(make_bundle(), tmp_path / "out", to="huggingface")
    assert list(tmp_path.iterdir()) == []
