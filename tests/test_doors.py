"""The same texts and documents through every door: the command line, Python and each API find the same answers."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient

from allyouneed import DocumentOptions, Translator, read_document, translate_document
from allyouneed.apps.convert import page_rules
from allyouneed.apps.convert.html import HTMLFolder, write_html
from allyouneed.apps.documents import document_format
from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.bundle import Bundle
from allyouneed.config import DecodeConfig, ModelConfig
from allyouneed.errors import ConfigError
from allyouneed.nn import Transformer
from allyouneed.text.letter_case import CaseStatistics
from allyouneed.text.sentencepiece import SentencePieceModel, make_tokenizer
from allyouneed.text.spans import CopyStatistics, find_spans
from allyouneed.text.tokenizer import Tokenizer
from marian_checkpoints import train_spm
from shell import run_here
from waiting import wait_until

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,;:?!'{}%@/()<>=\"-_\U0001f606"
TEXTS = [
    "The file %s is open in {name}.",
    "Write to tom@example.com now",
    "The file \U0001f606 is open",
    "See http://example.com/a.B?c. It is good.",
    "Go to the house. He is big! Where is he?",
    "Dr. Smith is here.  He reads",
    "hello there, how are you",
    "SAVE THE FILE",
    "12-3",
    "Due date",
]
DOCUMENTS = {
    "a.json": json.dumps({"a": TEXTS[0], "b": TEXTS[1], "c": TEXTS[2]}),
    "b.html": '<html lang="en"><body><p>Go to the <b>house</b>. He is big.</p><p>Open {name} now</p></body></html>',
    "c.md": "# The house\n\nThe *file* %s is open. Write to tom@example.com\n\n- one\n- two\n",
    "d.po": 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "The file %s is open"\nmsgstr ""\n',
    "e.txt": "The house is big. He is in it.\n\nThe file \U0001f606 is open\n",
}
LANGUAGES = {"source": "en", "target": "it"}
KINDS = ("urls", "emails", "placeholders", "emoji")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save an untrained bundle from English into Italian, whose gibberish is always the same."""
    torch.manual_seed(5)
    tokenizer = Tokenizer.characters(LETTERS)
    sizes = ModelConfig(
        vocab_size=len(tokenizer), pad_id=tokenizer.pad_id, d_model=16, d_ff=16, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=200, dropout=0.0,
    )  # fmt: skip
    decode = DecodeConfig(beam=1, extra_length=4)
    folder = tmp_path_factory.mktemp("doors") / "en-it"
    Bundle(Transformer(sizes).eval(), tokenizer, tokenizer, decode, languages=("en", "it")).save(folder)
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(create_app([folder], ServeConfig(device="cpu")), base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return Translator.load(folder, device="cpu")


@pytest.fixture(scope="module")
def expected(translator: Translator) -> list[str]:
    return translator.translate(TEXTS)


def test_python_streams_and_lists_what_it_translates(translator: Translator, expected: list[str]) -> None:
    assert [translator(text) for text in TEXTS] == expected
    assert ["".join(translator.stream(text)) for text in TEXTS] == expected


def test_what_is_to_be_copied_is_there_or_flagged(translator: Translator) -> None:
    for one in translator.translations(TEXTS):
        required, seen = (sorted(find_spans(text, KINDS)) for text in (one.source, one.text))
        assert required == seen or "wrong_spans" in one.flags
    assert any(find_spans(text, KINDS) for text in translator.translate(TEXTS))


def test_the_command_line_finds_the_same(folder: Path, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "in").write_text("".join(f"{text}\n" for text in TEXTS))
    result = run_here("translate", folder, tmp_path / "in", "--device", "cpu")
    assert result.stdout.decode().split("\n")[:-1] == [text.strip() for text in expected]
    typed = run_here("translate", folder, "--device", "cpu", "--", TEXTS[4])
    assert typed.stdout.decode().rstrip("\n") == expected[4].strip()


def test_every_api_for_texts_finds_the_same(client: TestClient, expected: list[str]) -> None:
    native = client.post("/v1/translate", json={"texts": TEXTS, **LANGUAGES}).json()["translations"]
    assert [one["text"] for one in native] == expected
    assert client.post("/translate", json={"q": TEXTS, **LANGUAGES}).json()["translatedText"] == expected
    deepl = client.post("/v2/translate", json={"text": TEXTS, "source_lang": "EN", "target_lang": "IT"})
    assert [one["text"] for one in deepl.json()["translations"]] == expected
    streamed = client.post("/v1/stream", json={"text": TEXTS[4], **LANGUAGES}).text
    assert json.loads(streamed.rpartition("data: ")[2]) == {"text": expected[4]}


def test_the_page_of_the_server_joins_the_sentences_that_the_server_finds(
    client: TestClient, expected: list[str]
) -> None:
    texts = [*TEXTS, "", " \n"]
    found = client.post("/v1/sentences", json={"texts": texts, **LANGUAGES}).json()["sentences"]
    joined = []
    for text, some in zip(texts, found, strict=True):
        assert text.startswith("".join(one["before"] + one["text"] for one in some))
        sentences = {"texts": [one["text"] for one in some], "split_sentences": False, **LANGUAGES}
        answers = client.post("/v1/translate", json=sentences).json()["translations"]
        joined.append("".join(one["gap"] + answer["text"] for one, answer in zip(some, answers, strict=True)))
    assert joined == [*expected, "", ""]
    assert sum(map(len, found)) > len(TEXTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_door_for_documents_writes_the_same(
    name: str, folder: Path, translator: Translator, client: TestClient, tmp_path: Path
) -> None:
    data, kind = DOCUMENTS[name].encode(), document_format(name)
    assert kind
    document = read_document(data, kind, DocumentOptions(target_language="it"))
    written = translate_document(document, translator)
    source, output = tmp_path / name, tmp_path / f"it-{name}"
    source.write_bytes(data)
    result = run_here("translate", folder, source, "--format", kind, "--output", output, "--device", "cpu")
    assert result.returncode == 0, result.stderr.decode()
    assert output.read_bytes() == written.data
    answer = client.post("/translate_file", files={"file": (name, data)}, data=LANGUAGES)
    assert client.get(answer.json()["translatedFileUrl"]).content == written.data
    handle = client.post("/v2/document", files={"file": (name, data)}, data={"source_lang": "EN", "target_lang": "IT"})
    job, key = handle.json()["document_id"], {"document_key": handle.json()["document_key"]}
    wait_until(lambda: client.post(f"/v2/document/{job}", json=key).json()["status"] != "translating")
    assert client.post(f"/v2/document/{job}/result", json=key).content == written.data


def test_the_exported_page_finds_the_same(folder: Path, expected: list[str], tmp_path: Path) -> None:
    write_html(Bundle.load(folder), tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    answers = [page.text(text) for text in TEXTS]
    page.close()
    assert answers == expected


TAGGED = ">>ita<< Go to the house. He is big!\nWhere is he?"


def test_the_tag_of_a_language_reaches_every_sentence_through_every_door(tmp_path: Path) -> None:
    """A model into several languages reads at the start of a text into which; that is no sign of the text itself."""
    train_spm([" ".join(TEXTS)], tmp_path / "a.spm", 60)
    pieces = SentencePieceModel.load(tmp_path / "a.spm")
    symbols = ["<eos>", "<unk>", ">>ita<<", *(piece for piece, _ in pieces.pieces[3:]), "<pad>"]
    source, target = (make_tokenizer(pieces, symbols, start=start) for start in (None, "<pad>"))
    torch.manual_seed(1)
    sizes = ModelConfig(
        vocab_size=len(symbols), target_vocab_size=len(symbols), pad_id=len(symbols) - 1, d_model=16, d_ff=16, heads=2,
        encoder_layers=1, decoder_layers=1, max_length=200, dropout=0.0,
    )  # fmt: skip
    bundle = Bundle(
        Transformer(sizes).eval(), source, target, DecodeConfig(beam=1, extra_length=4), languages=("en", "it")
    )
    bundle.save(tmp_path / "en-it")
    translator = Translator(bundle)
    parts = [f">>ita<< {text}" for text in ("Go to the house.", "He is big!", "Where is he?")]
    assert [segment.text for segment in translator.split([TAGGED]).segments] == parts
    (expected,) = translator.translations([TAGGED])
    assert "wrong_spans" not in expected.flags
    document = read_document(json.dumps([TAGGED]).encode(), "json", DocumentOptions(target_language="it"))
    written = translate_document(document, translator)
    assert json.loads(written.data) == [expected.text]
    assert not any("sign" in reason for item in written.review for reason in item.reasons)
    with TestClient(create_app([tmp_path / "en-it"], ServeConfig(device="cpu")), base_url="http://localhost") as client:
        answer = client.post("/v1/sentences", json={"texts": [TAGGED], **LANGUAGES})
        assert [one["tag"] for one in answer.json()["sentences"][0]] == [">>ita<<"] * 3
        answer = client.post("/translate_file", files={"file": ("a.txt", TAGGED.encode())}, data=LANGUAGES)
        lines = [one.text for one in translator.translations(TAGGED.split("\n"))]
        assert client.get(answer.json()["translatedFileUrl"]).text.split("\n") == lines
    write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    assert page.evaluate(f"translator.translateText({json.dumps(TAGGED)})")["text"] == expected.text
    page.close()


PAIRS = [("The file is big", "il file"), ("THE", "IL")] * 60 + [("12-3", "12-3")] * 30 + [("Tom is here", "Tom")] * 10
LEARNED: dict[str, Any] = {
    "copy_statistics": CopyStatistics.from_pairs(PAIRS),
    "case_statistics": CaseStatistics.from_pairs(PAIRS[:1] * 200),
    "longest_source": 14,
}
WORDS = [*" ".join(TEXTS).split(), "{0}", "%d", "<b>a</b>", "no", "no", "no", "3.5"]


@pytest.mark.parametrize(("beam", "copied"), [(1, ()), (3, ("tags", "placeholders", "numbers"))])
def test_the_exported_page_copies_checks_cuts_and_flags_as_python_does(
    beam: int, copied: Any, folder: Path, tmp_path: Path
) -> None:
    rng = Random(beam)
    bundle = replace(Bundle.load(folder), decode=DecodeConfig(beam=beam, extra_length=4, copy_spans=copied), **LEARNED)
    write_html(bundle, tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 7))) for _ in range(8)]
    texts += ["12-3", "SAVE THE %s FILE NOW", f"  {TEXTS[4]}\n\n\t{TEXTS[6]}\n", ""]
    script = "(({ text, flags }) => [text, flags.sort()])(translator.translateText(%s, { beam: %d }))"
    answers = [page.evaluate(script % (json.dumps(text), beam)) for text in texts]
    page.close()
    assert answers == [[one.text, sorted(one.flags)] for one in Translator(bundle).translations(texts)]
    assert {flag for _, flags in answers for flag in flags} >= {"split", "copied", "recased"}


@pytest.mark.parametrize("setting", ["beam=0", "nonsense=1", "length_penalty=other"])
def test_a_setting_that_is_refused_is_refused_by_every_door(folder: Path, setting: str) -> None:
    lines = [
        run_here(command, folder, *words, f"decode.{setting}") for command, *words in (["translate", "-"], ["serve"])
    ]
    assert [line.returncode for line in lines] == [2, 2]
    assert lines[0].stderr == lines[1].stderr
    name, _, value = setting.partition("=")
    decode: dict[str, Any] = {name: int(value) if value.isdigit() else value}
    with pytest.raises(ConfigError, match=name):
        create_app([folder], decode=decode)
    with pytest.raises(ConfigError, match=name):
        Translator.load(folder, **decode)


SETTINGS: list[dict[str, Any]] = [
    {"beam": 1, "extra_length": 20, "ban_unknown": False, "recase": False, "copy_untranslatable": False},
    {"alpha": 3.0, "length_ratio": 0.2, "no_repeat_ngram_size": 2, "copy_spans": ("numbers",)},
    {"max_length": 7, "forced_eos": True},
    {"min_length": 25, "retry_repetition": False, "length_ratio": 3.0},
    {"min_ratio": 2.0, "length_ratio": 3.0, "renormalize_logits": False},
    {
        "early_stopping": "beam",
        "patience": 0.1,
        "length_penalty": "plain",
        "batch_size": 1,
        "beam": 4,
    },
    {"replace_unknown": True},
    {"sample": True, "temperature": 0.5, "top_k": 9, "top_p": 0.5, "seed": 7, "repetition_penalty": 2.0, "nbest": 2},
]
OF_SOME_SEARCHES = {"batch_size", "nbest", "early_stopping", "patience", "length_penalty"}  # not of these texts
NOT_ON_A_PAGE = {"nbest": 2, "repetition_penalty": 2.0, "sample": True}
SOME_TEXTS = [TEXTS[0], TEXTS[4], "Dr. Smith is 12.  \u00df\u00e9 reads", "SAVE THE FILE", "12-3"]


@pytest.fixture(scope="module")
def learned(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the same bundle, with an <unk>, and with what it would have learned of copies and capitals."""
    bundle = Bundle.load(folder)
    tokenizer = Tokenizer.characters(LETTERS, unknown=True)
    config = replace(bundle.config, vocab_size=len(tokenizer))
    torch.manual_seed(1)
    model = Transformer(config).eval()
    decode = DecodeConfig(beam=3, extra_length=6, length_ratio=0.6)
    learned = tmp_path_factory.mktemp("learned") / "en-it"
    Bundle(model, tokenizer, tokenizer, decode, languages=("en", "it"), **LEARNED).save(learned)
    return learned


def test_the_table_has_every_setting_of_the_search(learned: Path) -> None:
    assert {name for some in SETTINGS for name in some} == {field.name for field in fields(DecodeConfig)}
    translator = Translator.load(learned, device="cpu")
    for some in SETTINGS:
        expected = translator.using(**some).translate(SOME_TEXTS)
        for name in some.keys() - OF_SOME_SEARCHES:
            others = {key: value for key, value in some.items() if key != name}
            assert translator.using(**others).translate(SOME_TEXTS) != expected, name


@pytest.fixture(scope="module")
def splitting(learned: Path) -> dict[str, Any]:
    """Return the rules about sentences for every page of the bundle, which take seconds to find out."""
    bundle = Bundle.load(learned)
    return page_rules.splitting_rules(bundle.source_tokenizer, bundle.languages, True)


@pytest.mark.parametrize("changed", SETTINGS, ids=", ".join)
def test_every_door_obeys_a_setting_or_refuses_it(
    changed: dict[str, Any], learned: Path, splitting: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(learned, device="cpu", **changed)
    expected = translator.translate(SOME_TEXTS)
    read = read_document(json.dumps(SOME_TEXTS).encode(), "json", DocumentOptions(target_language="it"))
    expected_document = json.loads(translate_document(read, translator).data)

    arguments = [f"decode.{key}={','.join(one) if isinstance(one, tuple) else json.dumps(one).strip(chr(34))}"
                 for key, one in changed.items()]  # fmt: skip
    lines, document = tmp_path / "in", tmp_path / "in.json"
    lines.write_text("".join(f"{text}\n" for text in SOME_TEXTS))
    document.write_text(json.dumps(SOME_TEXTS))
    printed = run_here("translate", learned, lines, *arguments, "--device", "cpu")
    assert [line.split("\t")[0] for line in printed.stdout.decode().split("\n")[:-1]] == expected
    written = run_here("translate", learned, document, *arguments, "-o", tmp_path / "out.json", "--device", "cpu")
    if "nbest" in changed:  # a document has one translation
        assert (written.returncode, "nbest" in written.stderr.decode()) == (2, True)
    else:
        assert json.loads((tmp_path / "out.json").read_text()) == expected_document

    app = create_app([learned], ServeConfig(device="cpu", workers=1), decode=changed)
    with TestClient(app, base_url="http://localhost") as client:
        native = client.post("/v1/translate", json={"texts": SOME_TEXTS, **LANGUAGES}).json()["translations"]
        assert [one["text"] for one in native] == expected
        assert client.post("/translate", json={"q": SOME_TEXTS, **LANGUAGES}).json()["translatedText"] == expected
        deepl = client.post("/v2/translate", json={"text": SOME_TEXTS, "source_lang": "EN", "target_lang": "IT"})
        assert [one["text"] for one in deepl.json()["translations"]] == expected
        answer = client.post("/translate_file", files={"file": ("in.json", document.read_bytes())}, data=LANGUAGES)
        assert client.get(answer.json()["translatedFileUrl"]).json() == expected_document

    monkeypatch.setattr(page_rules, "splitting_rules", lambda *_: splitting)
    if changed.keys() & NOT_ON_A_PAGE:
        return
    bundle = Bundle.load(learned)
    write_html(replace(bundle, decode=bundle.decode.with_changes(changed)), tmp_path, "float32")
    page = HTMLFolder(tmp_path)
    beam = changed.get("beam", 3)
    answers = [page.text(text, beam=beam) for text in SOME_TEXTS]
    page.close()
    assert answers == expected


@pytest.mark.parametrize("name", NOT_ON_A_PAGE)
def test_what_a_page_cannot_do_is_refused_with_the_command_that_works(name: str, learned: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    setting = f"decode.{name}={json.dumps(NOT_ON_A_PAGE[name])}"
    refused = run_here("export", learned, page, "--to", "html", setting)
    assert refused.returncode == 2
    assert len(refused.stderr.decode().strip().split("\n")) == 1
    usual = f"decode.{name}={json.dumps(getattr(DecodeConfig(), name))}"
    assert f"{learned} {page} --to html {usual}" in refused.stderr.decode()
    assert not page.exists()
    assert run_here("export", learned, page, "--to", "onnx", setting).returncode == 2
