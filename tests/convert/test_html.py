"""The exported page: its JavaScript in V8, beside our model and search; and the page in a browser."""

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from axe_core_python.sync_playwright import Axe

from allyouneed import Translator
from allyouneed.apps.convert import html
from allyouneed.apps.convert.exports import ExportPrecision, export_bundle
from allyouneed.apps.convert.html import WEB, HTMLFolder
from allyouneed.config import DecodeConfig
from allyouneed.errors import ExportError
from allyouneed.nn import Transformer
from allyouneed.text.backends import bpe_backend
from allyouneed.text.sentencepiece import SentencePieceModel, make_tokenizer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.vocabulary import load_vocabulary
from allyouneed.younger import build_model
from bundles import make_bundle
from chromium_page import open_page
from docs_programs import program
from foreign_tokenizers import foreign_tokenizers
from marian_checkpoints import ENGLISH, ITALIAN, train_spm

OPTIONS: dict[str, Any] = {"positions": "rotary", "query_key_norm": True}
SIZES: list[dict[str, Any]] = [
    {"norm": "pre", "activation": "gelu", "tied_embeddings": "none", "positions": "learned", "d_k": 5, "d_v": 7},
    {"positions": "sinusoidal-rotary"},
    {"query_key_norm": True, "d_v": 7},
    {**OPTIONS, "norm": "pre", "d_k": 5},  # the fifth number of a head is not rotated
]


def test_a_vocabulary_that_the_page_does_not_know_is_refused(tmp_path: Path) -> None:
    tokenizer = foreign_tokenizers()["words"]
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    side = load_vocabulary(str(tmp_path / "tokenizer.json")).vocabulary.source
    bundle = make_bundle(vocab_size=len(side), pad_id=side.pad_id)
    with pytest.raises(
        ExportError, match="the page cannot encode text with this vocabulary: its normalizer is StripAccents"
    ):
        export_bundle(replace(bundle, source_tokenizer=side, target_tokenizer=side), tmp_path / "out", to="html")


def test_an_imported_vocabulary_for_each_side_can_be_a_page(tmp_path: Path) -> None:
    sides = []
    for lines, start in ((ENGLISH, None), (ITALIAN, "<pad>")):
        train_spm(lines, tmp_path / "a.spm", 130)
        model = SentencePieceModel.load(tmp_path / "a.spm")
        symbols = ["<eos>", "<unk>", *(piece for piece, _ in model.pieces), "<pad>"]
        sides.append(make_tokenizer(model, symbols, start=start))
    source, target = sides
    sizes: dict[str, Any] = {"vocab_size": len(source), "pad_id": source.pad_id, "target_vocab_size": len(target)}
    sizes |= {"target_pad_id": target.pad_id, "tied_embeddings": "target"}
    decode = DecodeConfig(beam=4, ban_unknown=True, renormalize_logits=False, extra_length=2, length_ratio=1.5)
    bundle = replace(make_bundle(**sizes), source_tokenizer=source, target_tokenizer=target, decode=decode)
    proof = export_bundle(bundle, tmp_path / "out", to="html", precision="float32", sentences=5)
    assert proof.passed
    page = HTMLFolder(tmp_path / "out")
    ours = Translator(bundle).using(copy_untranslatable=False, retry_repetition=False)
    texts = [*ENGLISH[:5], "The ½ ﬁlm is  new…", "\ufeffThe river"]
    assert [page.text(text, beam=4) for text in texts] == ours.translate(texts)
    page.close()


# Translates texts in a worker made of the page's own code.
TRANSLATE_ALL = """async ([library, bundle, weights, texts]) => {
  const code = library + `
    onmessage = ({ data }) => {
      const translator = new Translator(JSON.parse(data.bundle), data.weights);
      const translations = data.texts.map((text) => translator.translate(text).hypotheses[0].text);
      postMessage([translator.model.kernels.name, ...translations]);
    };`;
  const worker = new Worker(URL.createObjectURL(new Blob([code])));
  const answer = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
  worker.postMessage({ bundle, weights, texts });
  return await answer;
}"""


@pytest.mark.parametrize(("count", "sizes"), [(500, {}), (100, OPTIONS)])
def test_greedy_translations_in_chromium_are_ours_token_for_token(
    tmp_path: Path, count: int, sizes: dict[str, Any]
) -> None:
    bundle = make_bundle(d_model=32, d_ff=32, max_length=16, **sizes)
    html.write_html(bundle, tmp_path, "float32")
    rng = Random(1)
    texts = ["".join(rng.choices("abcdefghij", k=rng.randint(1, 12))) for _ in range(count)]
    file = tmp_path / "index.html"
    parts = dict(re.findall(r'<script type="[^"]+" id="(\w+)">(.*?)</script>', file.read_text(), re.DOTALL))
    with open_page(file) as page:
        kernels, *translations = page.evaluate(
            TRANSLATE_ALL, [parts["library"], parts["bundle"], parts["weights"], texts]
        )
    greedy = Translator(bundle).using(beam=1, copy_untranslatable=False, retry_repetition=False)
    assert kernels == "WebAssembly"
    assert translations == greedy.translate(texts)


@pytest.mark.parametrize("sizes", [{}, SIZES[-1]], ids=str)
@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_rounded_weights_come_close(tmp_path: Path, precision: str, sizes: dict[str, Any]) -> None:
    proof = export_bundle(make_bundle(**sizes), tmp_path / "out", to="html", precision=precision, sentences=5)
    assert 1e-5 < proof.mean_difference < 0.1


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_model_can_be_a_page(tmp_path: Path, sizes: dict[str, Any]) -> None:
    proof = export_bundle(make_bundle(**sizes), tmp_path / "out", to="html", precision="float32", sentences=5)
    assert proof.identical == 5
    assert proof.max_difference < 1e-4


def test_a_switch_of_the_page_turns_its_part_off(tmp_path: Path) -> None:
    bundle = make_bundle()
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    source = bundle.source_tokenizer.encode("abcd")

    def first_step(switches: str) -> list[float]:
        script = f"""(() => {{
            const switches = {{ ...ALL_ON, {switches} }};
            const state = translator.model.start(translator.model.encode({source}, switches));
            return Array.from(translator.model.decode([10, 1, 2], state, switches).logProbabilities.slice(0, 10));
        }})()"""
        return list(page.evaluate(script))

    usual = first_step("")
    for switches in (
        "positions: false",
        "scaling: false",
        "causal: false",
        "headsOff: new Set(['encoder.layers.0.attention:1'])",
    ):
        assert first_step(switches) != usual, switches
    with torch.no_grad():  # a head that is switched off writes nothing: its columns of the output map are 0
        bundle.model.get_submodule("encoder.layers.0.attention.output").get_parameter("weight")[:, 8:] = 0
        logits = bundle.model(torch.tensor([source]), torch.tensor([[10, 1, 2]]))[0, -1]
    logits[[10, 12]] = -torch.inf
    expected = logits.log_softmax(-1)[:10].tolist()
    assert first_step("headsOff: new Set(['encoder.layers.0.attention:1'])") == pytest.approx(expected, abs=1e-5)
    page.close()


@pytest.mark.parametrize("sizes", SIZES[1:], ids=str)
def test_without_positions_the_page_adds_and_rotates_nothing(tmp_path: Path, sizes: dict[str, Any]) -> None:
    bundle = make_bundle(**sizes)
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)

    def last_step(positions: str) -> list[float]:
        """The log-probabilities of the letters after three tokens, the last two of which are decoded together."""
        script = f"""(() => {{
            const switches = {{ ...ALL_ON, positions: {positions} }};
            const start = translator.model.start(translator.model.encode([10, 1, 2, 3, 11], switches));
            const {{ state }} = translator.model.decode([10], start, switches);
            return Array.from(translator.model.decode([1, 2], state, switches).logProbabilities.slice(0, 10));
        }})()"""
        return list(page.evaluate(script))

    def expected(model: Transformer) -> list[float]:
        with torch.no_grad():
            logits = model(torch.tensor([[10, 1, 2, 3, 11]]), torch.tensor([[10, 1, 2]]))[0, -1]
        logits[[10, 12]] = -torch.inf
        return list(logits.log_softmax(-1)[:10].tolist())

    assert last_step("true") == pytest.approx(expected(bundle.model), abs=1e-5)
    plain = build_model(replace(bundle.model.config, positions="sinusoidal")).eval()
    plain.load_state_dict(bundle.model.state_dict())
    for side in ("source", "target"):
        plain.get_buffer(f"{side}_position.encoding").zero_()
    assert last_step("false") == pytest.approx(expected(plain), abs=1e-5)
    assert last_step("false") != pytest.approx(last_step("true"), abs=1e-3)
    page.close()


@pytest.mark.parametrize(("precision", "width"), [("float32", 16), ("int8", 16), ("int8", 12), ("float32", 12)])
def test_products_in_webassembly_and_in_javascript_agree(
    tmp_path: Path, precision: ExportPrecision, width: int
) -> None:
    bundle = make_bundle(d_model=width)  # 12 is no multiple of 8, so that JavaScript multiplies some of the matrices
    html.write_html(bundle, tmp_path, precision)
    page = HTMLFolder(tmp_path)
    assert page.evaluate("translator.model.kernels.name") == "WebAssembly"
    usual = page.log_probabilities([10, 1, 2, 3, 11], [10, 4, 5, 6, 11])
    page.evaluate("translator.model.kernels.instructions = null")
    assert page.evaluate("translator.model.kernels.name") == "JavaScript"
    plain = page.log_probabilities([10, 1, 2, 3, 11], [10, 4, 5, 6, 11])
    page.close()
    assert usual != plain  # or else WebAssembly has not been called
    assert usual == pytest.approx(plain, abs=1e-5)


def test_the_bytes_of_the_kernels_are_those_of_their_source() -> None:
    assembler = program("wasm")
    assert (WEB / "kernels.wasm").read_bytes() == assembler.assemble((WEB / "kernels.wat").read_text()), (
        "run docs/make/wasm.py"
    )


def test_a_blank_text_has_no_hypotheses(tmp_path: Path) -> None:
    bundle = make_bundle()
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    blank: dict[str, object] = {"source": [], "hypotheses": [], "beam": [], "encoderAttention": {}}
    assert page.evaluate("translator.translate(' \\n')") == blank
    page.close()


def test_the_steps_of_a_beam_lead_to_its_hypotheses(tmp_path: Path) -> None:
    bundle = make_bundle()
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    result = page.evaluate("translator.translate('abcj', { beam: 3 })")
    page.close()
    written: list[list[str]] = [[]]
    ended = []
    for candidates in result["beam"]:
        assert len(candidates) == 6
        assert [one["total"] for one in candidates] == sorted((one["total"] for one in candidates), reverse=True)
        texts = [[*written[one["parent"]], one["piece"]] for one in candidates]
        ended += [text for text, one in zip(texts, candidates, strict=True) if one["fate"] == "ended"]
        written = [text for text, one in zip(texts, candidates, strict=True) if one["fate"] == "kept"]
        assert len(written) == 3
    finished = [one for one in result["hypotheses"] if one["finished"]]
    assert sorted([step["piece"] for step in one["steps"]] for one in finished) == sorted(ended)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(
    "rules",
    [
        {"min_length": 14},
        {"min_ratio": 2.5},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2, "min_length": 30},
    ],
    ids=str,
)
def test_the_page_keeps_the_rules_of_the_search(tmp_path: Path, rules: dict[str, Any], beam: int) -> None:
    bundle = replace(make_bundle(), decode=DecodeConfig(beam=beam, **rules))
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    ours = Translator(bundle).using(copy_untranslatable=False, retry_repetition=False)
    texts = ["abc", "jihgf", "aabbccdd", "e"]
    assert [page.text(text, beam=beam) for text in texts] == ours.translate(texts)
    assert ours.translate(texts) != ours.using(min_length=0, min_ratio=0, no_repeat_ngram_size=0).translate(texts)
    page.close()


def test_the_page_names_the_languages_of_its_texts(tmp_path: Path) -> None:
    html.write_html(replace(make_bundle(), languages=("en", "pt-BR")), tmp_path, "float32")
    page = (tmp_path / "index.html").read_text()
    assert re.search(r'<textarea id="input"[^>]* lang="en"', page)
    assert re.search(r'<output id="output"[^>]* lang="pt-BR"', page)


def search_without_positions(folder: Path, text: str) -> str:
    page = HTMLFolder(folder)
    switches = "{ ...ALL_ON, positions: false }"
    result = page.evaluate(f"translator.translate({json.dumps(text)}, {{ beam: 4, switches: {switches} }})")
    page.close()
    return str(result["hypotheses"][0]["text"])


def test_nothing_of_an_earlier_text_stands_beside_one_that_is_refused(tmp_path: Path) -> None:
    html.write_html(replace(make_bundle(), probes=("xyz",)), tmp_path, "float32")
    parts = [f"#{name}" for name in ("output", "time", "hypotheses", "steps", "candidates", "matrix", "matrix-caption")]
    with open_page(tmp_path / "index.html") as page:
        page.wait_for_selector("#error:not([hidden])")
        page.fill("#input", "abc")
        page.wait_for_selector("#error", state="hidden")
        page.select_option("#head", "0")
        assert all(page.text_content(part) for part in parts[1:])  # the translation may be empty
        page.fill("#input", "abx")
        page.wait_for_selector("#error:not([hidden])")
        assert not any(page.text_content(part) for part in parts)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_translates_as_one_types(tmp_path: Path, width: int) -> None:
    bundle = replace(make_bundle(), probes=("abc",))
    html.write_html(bundle, tmp_path, "float32")
    greedy = Translator(bundle).using(beam=4, copy_untranslatable=False, retry_repetition=False)
    with open_page(tmp_path / "index.html", width=width) as page:
        page.wait_for_function(f"document.getElementById('output').textContent === {json.dumps(greedy('abc'))}")
        page.fill("#input", "jihg")
        page.wait_for_function(f"document.getElementById('output').textContent === {json.dumps(greedy('jihg'))}")
        page.fill("#input", "jix")
        page.wait_for_function("document.getElementById('error').textContent.includes('“x” is not in the vocabulary')")
        page.fill("#input", "ab")
        page.wait_for_selector("#error", state="hidden")
        page.focus("#steps")
        for _ in range(40):
            page.keyboard.press("ArrowRight")
        assert page.locator(".step").last.get_attribute("aria-selected") == "true"
        without_positions = search_without_positions(tmp_path, "ab")
        page.uncheck("[data-switch=positions]")
        page.wait_for_function(f"document.getElementById('output').textContent === {json.dumps(without_positions)}")
        token = page.locator(".bar span").first
        assert token.get_attribute("title") == token.text_content()
        is_whole = "(parts) => parts.every((part) => part.scrollWidth <= part.clientWidth)"
        assert page.locator(".bar span, #matrix-caption").evaluate_all(is_whole)
        page.select_option("#layer", "encoder.layers.0.attention")
        assert page.locator("#matrix tbody tr").count() == 4  # <sos> a b <eos>
        assert page.locator("#candidates tr.kept").count() == 4  # the beam
        assert "products in WebAssembly" in str(page.text_content("#loading"))
        page.fill("#input", " ")
        page.wait_for_selector("#empty:not([hidden])")
        assert page.locator("section:visible").count() == 3  # without steps and attention
        page.fill("#input", "ab")
        page.wait_for_selector("#empty", state="hidden")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        faults = Axe().run(page)["violations"]
        assert [fault["id"] for fault in faults if fault["impact"] in ("serious", "critical")] == []


def test_the_page_knows_the_abbreviations_of_its_vocabulary_and_the_blanks_of_its_target(tmp_path: Path) -> None:
    pieces = Tokenizer(bpe_backend(["Dr. Bell and Mr. Bell meet. The end."] * 9, vocab_size=300))
    bundle = make_bundle(vocab_size=len(pieces), pad_id=pieces.pad_id)
    bundle = replace(bundle, source_tokenizer=pieces, target_tokenizer=pieces, languages=("en", "zh"))
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    expected = {"sentences": ["Dr. Bell met Mr. Bell.", "The end!", "Go"], "gaps": [" ", "", "\n", ""]}
    assert page.evaluate("splitText(' Dr. Bell met Mr. Bell. The end!\\nGo', translator.splitting)") == expected
    page.close()
