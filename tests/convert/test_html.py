"""The exported page: what runs in it, in V8 next to our engine and search; and the page in a browser."""

import json
import math
import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser
from torch import Tensor

from accessibility import faults
from allyouneed import Translator
from allyouneed.apps.convert import html
from allyouneed.apps.convert.exports import banned_ids, export_bundle
from allyouneed.apps.convert.html import HTMLFolder
from allyouneed.apps.explain import recorded_attention
from allyouneed.config import DecodeConfig
from allyouneed.errors import ExportError
from allyouneed.native.engine import NativeEngine, Precision
from allyouneed.nn import MultiHeadAttention, Transformer
from allyouneed.nn.attention import attention
from allyouneed.nn.weights import weight_buffers
from allyouneed.text.backends import bpe_backend
from allyouneed.text.sentencepiece import SentencePieceModel, make_tokenizer
from allyouneed.text.tokenizer import Tokenizer
from allyouneed.text.vocabulary_files import load_vocabulary
from allyouneed.younger import build_model
from bundles import make_bundle
from chromium_page import open_file
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
    with pytest.raises(ExportError, match="StripAccents"):
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
    ours = Translator(bundle)
    texts = [*ENGLISH[:5], "The ½ ﬁlm is  new…", "\ufeffThe river"]
    assert [page.text(text, beam=4) for text in texts] == ours.translate(texts)
    page.close()


# Translates texts in a worker made of the page's own code.
TRANSLATE_ALL = """async ([library, bundle, weights, texts]) => {
  const code = library + `
    onmessage = ({ data }) => {
      const translator = new Translator(JSON.parse(data.bundle), data.weights);
      const translations = data.texts.map((text) => translator.translate(text).hypotheses[0].text);
      postMessage(translations);
    };`;
  const worker = new Worker(URL.createObjectURL(new Blob([code])));
  const answer = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
  worker.postMessage({ bundle, weights, texts });
  return await answer;
}"""


@pytest.mark.parametrize(("count", "sizes"), [(500, {}), (100, OPTIONS)])
def test_greedy_translations_in_chromium_are_ours_token_for_token(
    browser: Browser, tmp_path: Path, count: int, sizes: dict[str, Any]
) -> None:
    bundle = make_bundle(d_model=32, d_ff=32, max_length=16, **sizes)
    html.write_html(bundle, tmp_path, "float32")
    rng = Random(1)
    texts = ["".join(rng.choices("abcdefghij", k=rng.randint(1, 12))) for _ in range(count)]
    file = tmp_path / "index.html"
    parts = dict(re.findall(r'<script type="[^"]+" id="(\w+)">(.*?)</script>', file.read_text(), re.DOTALL))
    with open_file(browser, file) as page:
        translations = page.evaluate(TRANSLATE_ALL, [parts["library"], parts["bundle"], parts["weights"], texts])
    greedy = Translator(bundle).using(beam=1)
    assert translations == greedy.translate(texts)


@pytest.mark.parametrize("sizes", [{}, {"tied_embeddings": "target"}, *SIZES], ids=str)
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_page_has_the_log_probabilities_of_a_cpu_to_the_bit(
    tmp_path: Path, precision: Precision, sizes: dict[str, Any]
) -> None:
    bundle = make_bundle(**sizes)
    with torch.no_grad():  # a row of zeros, and one of numbers that are nearly none
        weight = bundle.model.get_submodule("decoder.layers.0.feed_forward.inner").get_parameter("weight")
        weight[3], weight[4] = 0, 1e-13 * weight[4]
    html.write_html(bundle, tmp_path, precision)
    page = HTMLFolder(tmp_path)
    step = NativeEngine(bundle.model.config, weight_buffers(bundle.model), precision).start(
        [[10, 1, 2, 3, 11]], banned_ids=banned_ids(bundle)
    )
    found = page.evaluate(
        """(() => {
            const step = translator.model.start([10, 1, 2, 3, 11]);
            return [[[0], [10]], [[0, 0], [4, 5]], [[1, 0, 1], [6, 6, 2]]].map(([hypotheses, tokens]) => {
                step.next(hypotheses, tokens);
                return tokens.map((_, n) => step.logProbabilities(n).slice());
            });
        })()"""
    )
    page.close()
    for rows, (hypotheses, tokens) in zip(found, [([0], [10]), ([0, 0], [4, 5]), ([1, 0, 1], [6, 6, 2])], strict=True):
        step(hypotheses, tokens)
        expected = step.log_probabilities().tolist()
        assert [[-math.inf if value is None else value for value in row] for row in rows] == expected


@pytest.mark.parametrize("sizes", [{}, *SIZES], ids=str)
def test_the_page_shows_the_attention_that_the_model_computes(tmp_path: Path, sizes: dict[str, Any]) -> None:
    bundle = make_bundle(**sizes)
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    result = page.evaluate("translator.translate('abcd', { beam: 2, numbers: true, maxLength: 6 })")
    page.close()
    tokenizer = bundle.source_tokenizer
    steps = result["hypotheses"][0]["steps"]
    pieces = tokenizer.pieces(range(len(tokenizer)))
    target = [tokenizer.sos_id, *(pieces.index(step["piece"]) for step in steps[:-1])]
    with torch.no_grad(), recorded_attention(bundle.model) as seen:
        bundle.model(torch.tensor([tokenizer.encode("abcd")]), torch.tensor([target]))
    for name, weights in seen.items():
        if name.startswith("encoder"):
            torch.testing.assert_close(torch.tensor(result["encoderAttention"][name]), weights[0], atol=1e-5, rtol=0)
            continue
        for position, step in enumerate(steps):
            row = torch.tensor(step["attention"][name], dtype=torch.float32)
            torch.testing.assert_close(row, weights[0, :, position, : row.shape[1]], atol=1e-5, rtol=0)
            numbers = {part: torch.tensor(rows, dtype=torch.float32) for part, rows in step["numbers"][name].items()}
            heads, width = len(row), sizes.get("d_k") or 8
            query, key = (numbers[part].view(-1, heads, width).transpose(0, 1) for part in ("query", "key"))
            scores = (query @ key.transpose(1, 2))[:, 0] / math.sqrt(width)
            torch.testing.assert_close(scores.softmax(-1), row, atol=1e-5, rtol=0)
            assert numbers["value"].shape == (row.shape[1], heads * (sizes.get("d_v") or 8))


@pytest.mark.parametrize("sizes", [{}, SIZES[-1]], ids=str)
def test_rounded_weights_come_close(tmp_path: Path, sizes: dict[str, Any]) -> None:
    proof = export_bundle(make_bundle(**sizes), tmp_path / "out", to="html", precision="int8", sentences=5)
    assert 1e-5 < proof.mean_difference < 0.1


def test_a_page_in_int8_has_a_byte_for_each_number_of_a_matrix() -> None:
    bundle = make_bundle(tied_embeddings="none", positions="sinusoidal")
    shapes = bundle.shapes.values()
    matrices = sum(math.prod(shape) for shape in shapes if len(shape) == 2)
    scales_and_vectors = sum(4 * shape[0] for shape in shapes)
    stored = len(b64decode(html.web_model(bundle, "int8").weights))
    assert matrices + scales_and_vectors <= stored < matrices + scales_and_vectors + 4 * len(shapes)


@pytest.mark.parametrize("name", ["source_embedding.table", "decoder.layers.0.cross_attention.value.weight"])
def test_a_page_in_int8_that_differs_from_the_engine_by_one_level_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle()
    wrong, right = bundle.model.get_parameter(name), html.quantize

    def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
        levels, scales = right(weight)
        if weight.equal(wrong):
            levels[(levels > 0) & (levels < 127)] -= 1
        return levels, scales

    monkeypatch.setattr(html, "quantize", quantize)
    with pytest.raises(ExportError, match="bit"):
        export_bundle(bundle, tmp_path / "out", to="html", precision="int8", sentences=5)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_model_can_be_a_page(tmp_path: Path, sizes: dict[str, Any]) -> None:
    proof = export_bundle(make_bundle(**sizes), tmp_path / "out", to="html", precision="float32", sentences=5)
    assert proof.identical == 5
    assert proof.max_difference < 1e-4


SWITCHES = {
    "nothing": "",
    "positions": "positions: false",
    "scaling": "scaling: false",
    "causal mask": "causal: false",
    "heads": "headsOff: new Set(['encoder.layers.0.attention:1', 'decoder.layers.2.cross_attention:0'])",
}


def switch_off(part: str, model: Transformer, monkeypatch: pytest.MonkeyPatch) -> Transformer:
    """Switch the same part off in PyTorch."""
    if part == "positions":
        is_learned = model.config.positions == "learned"
        plain = build_model(model.config if is_learned else replace(model.config, positions="sinusoidal")).eval()
        plain.load_state_dict(model.state_dict())
        for name, table in [*plain.named_parameters(), *plain.named_buffers()]:
            if name.endswith("position.encoding"):
                table.data.zero_()
        return plain
    if part == "scaling":

        def unscaled(query: Tensor, *others: Tensor, dropout: float) -> Tensor:
            return attention(query * math.sqrt(query.shape[-1]), *others, dropout=dropout)

        monkeypatch.setattr(MultiHeadAttention, "attention", staticmethod(unscaled))
    if part == "causal mask":
        everyone = torch.ones(3, 3, dtype=torch.bool)
        monkeypatch.setattr("allyouneed.nn.transformer.causal_mask", lambda *_, **__: everyone)
    if part == "heads":
        for name, is_last in (("encoder.layers.0.attention", True), ("decoder.layers.2.cross_attention", False)):
            columns = model.get_parameter(f"{name}.output.weight").data.chunk(2, 1)[is_last]
            columns.zero_()
    return model


@pytest.mark.parametrize("sizes", [{}, *SIZES], ids=str)
@pytest.mark.parametrize("part", SWITCHES)
def test_a_switch_of_the_page_turns_its_part_off(
    part: str, sizes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(**sizes)
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)

    def letters(switches: str) -> list[float]:
        """Return the letters' log-probabilities after three tokens; the second and the third differ in one."""
        script = f"""(() => {{
            const step = translator.model.start([10, 1, 2, 3, 11], {{ ...ALL_ON, {switches} }});
            step.next([0], [10]);
            step.next([0, 0], [3, 1]);
            step.next([1, 0], [2, 2]);
            return step.logProbabilities(0).slice(0, 10);
        }})()"""
        return list(page.evaluate(script))

    usual, found = letters(""), letters(SWITCHES[part])
    page.close()
    with torch.no_grad():
        model = switch_off(part, bundle.model, monkeypatch)
        logits = model(torch.tensor([[10, 1, 2, 3, 11]]), torch.tensor([[10, 1, 2]]))[0, -1]
    logits[list(banned_ids(bundle))] = -torch.inf
    assert found == pytest.approx(logits.log_softmax(-1)[:10].tolist(), abs=1e-5)
    assert (part == "nothing") == (found == pytest.approx(usual, abs=1e-3))


def test_a_beam_without_the_causal_mask_has_the_totals_of_its_hypotheses_alone(tmp_path: Path) -> None:
    html.write_html(make_bundle(), tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    page.evaluate("globalThis.switches = { causal: false }")
    result = page.evaluate("translator.translate('abcj', { beam: 3, maxLength: 5, switches })")
    gains = page.evaluate(
        """(() => {
            const ids = search(translator.model, translator.source.encode("abcj"), {
              beam: 3, maxLength: 5, switches: { ...ALL_ON, causal: false },
            }).hypotheses[0].steps.map(({ token }) => token);
            const step = translator.model.start(translator.source.encode("abcj"), { ...ALL_ON, causal: false });
            return ids.map((id, i) => {
                step.next([0], [i ? ids[i - 1] : 10]);
                return step.logProbabilities(0)[id];
            });
        })()"""
    )
    page.close()
    steps = result["hypotheses"][0]["steps"]
    assert [math.log(step["probability"]) for step in steps] == pytest.approx(gains)


def test_a_blank_text_has_no_hypotheses(tmp_path: Path) -> None:
    bundle = make_bundle()
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    blank: dict[str, object] = {
        "text": "", "flags": [], "total": 0, "tokens": 0, "source": [], "sourceIds": [], "hypotheses": [],
        "beam": [], "encoderAttention": {},
    }  # fmt: skip
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


@pytest.mark.parametrize(
    ("rules", "beams"),
    [
        ({"min_length": 14}, (1, 3)),
        ({"min_ratio": 2.5}, (1, 3)),
        ({"no_repeat_ngram_size": 1}, (1, 3)),
        ({"no_repeat_ngram_size": 2, "min_length": 30}, (1, 3)),
        ({"forced_eos": True, "extra_length": 1}, (3,)),
        ({"early_stopping": "beam", "alpha": 3.0}, (3,)),
        ({"length_penalty": "plain", "alpha": 1.0}, (3,)),
    ],
    ids=str,
)
def test_the_page_keeps_the_rules_of_the_search(tmp_path: Path, rules: dict[str, Any], beams: tuple[int, ...]) -> None:
    bundle = replace(make_bundle(), decode=DecodeConfig(**rules))
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    texts = ["abc", "jihgf", "aabbccdd", "e", "id", "a", "fba", "agbbid", "cifbdaga"]
    without = replace(bundle, decode=DecodeConfig(**dict([*rules.items()][1:])))
    for beam in beams:
        ours = Translator(bundle).using(beam=beam).translate(texts)
        assert [page.text(text, beam=beam) for text in texts] == ours
        assert Translator(without).using(beam=beam).translate(texts) != ours
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


def test_nothing_of_an_earlier_text_stands_beside_one_that_is_refused(browser: Browser, tmp_path: Path) -> None:
    html.write_html(replace(make_bundle(), probes=("xyz",)), tmp_path, "float32")
    parts = [f"#{name}" for name in ("output", "time", "hypotheses", "steps", "candidates", "matrix", "matrix-caption")]
    with open_file(browser, tmp_path / "index.html") as page:
        page.wait_for_selector("#error:not([hidden])")
        page.fill("#input", "abc")
        page.wait_for_selector("#error", state="hidden")
        page.select_option("#head", "0")
        assert all(page.text_content(part) for part in parts[1:])  # the translation may be empty
        page.fill("#input", "abx")
        page.wait_for_selector("#error:not([hidden])")
        assert not any(page.text_content(part) for part in parts)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_translates_as_one_types(browser: Browser, tmp_path: Path, width: int) -> None:
    bundle = replace(make_bundle(), probes=("abc",))
    html.write_html(bundle, tmp_path, "float32")
    greedy = Translator(bundle).using(beam=4)
    with open_file(browser, tmp_path / "index.html", width=width) as page:
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
        assert "MB of memory" in str(page.text_content("#loading"))
        page.fill("#input", " ")
        page.wait_for_selector("#empty:not([hidden])")
        assert page.locator("section:visible").count() == 3  # without steps and attention
        page.fill("#input", "ab")
        page.wait_for_selector("#empty", state="hidden")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert faults(page) == []


def test_the_page_knows_the_abbreviations_of_its_vocabulary_and_the_blanks_of_its_target(tmp_path: Path) -> None:
    pieces = Tokenizer(bpe_backend(["Dr. Bell and Mr. Bell meet. The end."] * 9, vocab_size=300))
    bundle = make_bundle(vocab_size=len(pieces), pad_id=pieces.pad_id)
    bundle = replace(bundle, source_tokenizer=pieces, target_tokenizer=pieces, languages=("en", "zh"))
    html.write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    expected = {"sentences": ["Dr. Bell met Mr. Bell.", "The end!", "Go"], "gaps": [" ", "", "\n", ""]}
    assert page.evaluate("splitText(' Dr. Bell met Mr. Bell. The end!\\nGo', translator.splitting)") == expected
    page.close()
