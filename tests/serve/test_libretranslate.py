"""LibreTranslate's API: fields, status codes and texts, for JSON, forms and query strings."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from allyouneed import Translator
from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from serve.stub import stub_app

BASE = "http://localhost"
PLAIN = {"q": "Hello", "source": "en", "target": "it"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = stub_app(max_texts=3, max_characters=100, max_alternatives=5)
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        yield client


def test_json_forms_and_the_query_string_are_read(client: TestClient) -> None:
    answers = [
        client.post("/translate", json=PLAIN),
        client.post("/translate", data=PLAIN),
        client.post("/translate", files={name: (None, value) for name, value in PLAIN.items()}),
        client.post("/translate", params=PLAIN),
        client.post("/translate", params={"q": "Hello"}, data={"q": "ignored", "source": "en", "target": "it"}),
        client.post("/translate", json=PLAIN, headers={"Content-Type": "application/json; charset=utf-8"}),
    ]
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"translatedText": "hELLO"})] * 6


def test_a_list_of_texts_has_a_list_of_translations(client: TestClient) -> None:
    answer = client.post("/translate", json={**PLAIN, "q": ["Hello", "World"]})
    assert answer.json() == {"translatedText": ["hELLO", "wORLD"]}


def test_sentences_are_cut_by_the_source_language_and_joined_by_the_target_language() -> None:
    app = stub_app("de:zh", "zh:en")
    with TestClient(app, base_url=BASE) as client:
        for source, target, text, answer in (
            ("de", "zh", "Am 3. Mai. Gut.", "aM 3. mAI.gUT."),
            ("zh", "en", "你好。再见。", "你好。 再见。"),
        ):
            body = {"q": text, "source": source, "target": target}
            assert client.post("/translate", json=body).json()["translatedText"] == answer
            body = {**body, "q": f"<p>{text}</p>", "format": "html"}
            assert client.post("/translate", json=body).json()["translatedText"] == f"<p>{answer}</p>"


MARKUP = [
    '<div class="card-body text-center"><a class="btn btn-primary" href="/products/view-all">Chi siamo</a></div>',
    "<!-- Start of the navigation bar, please keep this comment --><p>La casa è grande.</p>",
    "<script>function showTheWholeMenu() { return document.title }</script><p>Il cane corre.</p>",
    '<style>.the-main-window { color: red }</style><p data-title="the name of the house">Non lo so ancora.</p>',
]


@pytest.mark.parametrize("text", MARKUP)
def test_the_language_of_markup_is_that_of_its_words(text: str) -> None:
    with TestClient(stub_app("it:en", "en:it"), base_url=BASE) as client:
        body = {"q": text, "source": "auto", "target": "en", "format": "html"}
        answer = client.post("/translate", json=body).json()
        assert answer["detectedLanguage"]["language"] == "it"
        assert answer["translatedText"] != text
        deepl = {"text": [text], "target_lang": "EN", "tag_handling": "html"}
        (answer,) = client.post("/v2/translate", json=deepl).json()["translations"]
        assert answer["detected_source_language"] == "IT"
        assert answer["text"] != text


def test_the_language_is_detected_for_each_text_on_its_own(client: TestClient) -> None:
    texts = ["Where is the next train station?", "Wo ist der nächste Bahnhof?"]
    answer = client.post("/translate", json={"q": texts, "source": "auto", "target": "it"}).json()
    assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "de"]
    assert all(90 < one["confidence"] <= 100 for one in answer["detectedLanguage"])
    answer = client.post("/translate", data={"q": texts[1], "source": "auto", "target": "it"}).json()
    assert answer["detectedLanguage"]["language"] == "de"


def test_a_text_that_is_in_the_target_language_already_is_unchanged(client: TestClient) -> None:
    text = "Dove si trova la prossima stazione?"
    answer = client.post("/translate", json={"q": text, "source": "auto", "target": "it"}).json()
    assert answer["translatedText"] == text
    assert answer["detectedLanguage"]["language"] == "it"


@pytest.mark.parametrize("body", ["q=città+è&source=en&target=it", "q=citt%C3%A0+%C3%A8&source=en&target=it"])
def test_letters_beyond_ascii_may_stand_in_a_form_as_they_are(client: TestClient, body: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/translate", content=body.encode(), headers=headers)
    assert answer.json() == {"translatedText": "CITTÀ È"}
    many = "&".join(f"a{number}=b" for number in range(1001))
    assert client.post("/translate", content=many.encode(), headers=headers).status_code == 400


@pytest.mark.parametrize("text", ["🙂", "👩‍👩‍👧 ❤️", " "])
def test_emoji_are_returned_as_they_are(client: TestClient, text: str) -> None:
    answer = client.post("/translate", json={"q": text, "source": "auto", "target": "it"}).json()
    assert answer == {"translatedText": text, "detectedLanguage": {"language": "en", "confidence": 0.0}}


def test_lines_and_blanks_are_kept(client: TestClient) -> None:
    answer = client.post("/translate", json={**PLAIN, "q": "Hello\n\n  World \nHello"}).json()
    assert answer == {"translatedText": "hELLO\n\n  wORLD \nhELLO"}
    answer = client.post("/translate", data={**PLAIN, "q": "Hello\r\nWorld"}).json()
    assert answer == {"translatedText": "hELLO\nwORLD"}


@pytest.mark.parametrize("count", [2, "2"])
def test_alternatives_are_there_if_they_are_requested(client: TestClient, count: object) -> None:
    answer = client.post("/translate", json={**PLAIN, "alternatives": count}).json()
    assert answer == {"translatedText": "hELLO", "alternatives": ["hELLO 1", "hELLO 2"]}
    answer = client.post("/translate", json={**PLAIN, "q": ["a", "b"], "alternatives": count}).json()
    assert answer == {"translatedText": ["A", "B"], "alternatives": [["A 1", "A 2"], ["B 1", "B 2"]]}
    assert "alternatives" not in client.post("/translate", json={**PLAIN, "alternatives": -3}).json()


def test_further_fields_are_there_if_they_are_requested(client: TestClient) -> None:
    extras = {"scores": True, "flags": True, "alignments": True, "glossary": {"cut": "SNIP"}}
    answer = client.post("/translate", json={**PLAIN, "q": "cut", **extras}).json()
    assert answer == {
        "translatedText": "SNIP",
        "scores": -0.5,
        "flags": ["unfinished"],
        "alignments": {"source": ["cut"], "target": ["SNIP"], "links": [[0, 0]]},
    }
    answer = client.post("/translate", json={**PLAIN, "q": ["a b\nc", "d"], **extras}).json()
    assert answer["alignments"][0]["links"] == [[0, 0], [1, 1], [2, 2]]
    assert answer["flags"] == [[], []]


@pytest.mark.parametrize("code", ["EN", "en-US", "en_GB"])
def test_codes_may_be_written_otherwise(client: TestClient, code: str) -> None:
    assert client.post("/translate", json={**PLAIN, "source": code}).json() == {"translatedText": "hELLO"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"q": None}, "missing q parameter"),
        ({"q": ""}, "missing q parameter"),
        ({"q": []}, "missing q parameter"),
        ({"source": None}, "missing source parameter"),
        ({"target": ""}, "missing target parameter"),
        ({"alternatives": "many"}, "alternatives parameter"),
        ({"alternatives": 6}, "<= 5"),
        ({"q": "a" * 101}, "text limit (100)"),
        ({"q": ["a"] * 4}, "text limit (3)"),
        ({"source": "XX"}, "xx "),
        ({"target": "yy"}, "yy "),
        ({"target": "de"}, "German (de) "),
        ({"format": "rtf"}, "rtf format "),
        ({"q": {"a": 1}}, ": q parameter must"),
        ({"q": ["a", 1]}, ": q parameter must"),
        ({"q": 12}, ": q parameter must"),
        ({"source": ["en"]}, ": source parameter must"),
        ({"scores": "maybe?"}, ": scores parameter must"),
        ({"flags": ["a"]}, ": flags parameter must"),
        ({"glossary": ["a"]}, ": glossary parameter must"),
        ({"glossary": {"a": " "}}, " each entry"),
        ({"q": "refuse!"}, "vocabulary"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(client: TestClient, change: dict[str, Any], error: str) -> None:
    answer = client.post("/translate", json={**PLAIN, **change})
    assert answer.status_code == 400
    assert error in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"[]", "Invalid JSON format"),
        (b'"text"', "Invalid JSON format"),
        (b"{", "Invalid JSON format"),
        (b"\xff", "Invalid JSON format: not UTF-8 at byte 1"),
        (b'{"q": "\\ud800", "source": "en", "target": "it"}', "surrogate"),
        (b'{"q": ' + b"[" * 100_000, "too deeply"),
        (b'{"q": ' + b"9" * 10_000 + b"}", "digits"),
        (b"", "missing q parameter"),
    ],
)
def test_a_body_that_is_no_object_of_json_is_refused(client: TestClient, body: bytes, error: str) -> None:
    answer = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert error in answer.json()["error"]


def test_detect_answers_the_languages_the_best_first(client: TestClient) -> None:
    answer = client.post("/detect", data={"q": "Wo ist der nächste Bahnhof?"}).json()
    assert answer[0]["language"] == "de"
    assert {one["language"] for one in answer} >= {"de", "en", "it"}  # whatever else it may be
    assert client.post("/detect", json={"q": ["12", "🙂"]}).json() == [{"confidence": 0.0, "language": "en"}]
    assert " q parameter" in client.post("/detect", json={}).json()["error"]


def test_every_language_has_its_targets(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["it"]},
        {"code": "it", "name": "Italian", "targets": ["en"]},
        {"code": "de", "name": "German", "targets": ["it"]},
    ]


def test_a_language_that_is_only_a_target_is_listed_too() -> None:
    with TestClient(stub_app("en:pt-BR"), base_url=BASE) as client:
        assert client.get("/languages").json()[1] == {"code": "pt-BR", "name": "Portuguese (Brazil)", "targets": []}
        assert client.post("/translate", json={**PLAIN, "target": "pb"}).json() == {"translatedText": "hELLO"}


def test_settings_of_the_page(client: TestClient) -> None:
    settings = client.get("/frontend/settings").json()
    assert (settings["charLimit"], settings["textsLimit"], settings["alternativesLimit"]) == (100, 3, 5)
    assert settings["language"] == {
        "source": {"code": "auto", "name": "Auto Detect"},
        "target": {"code": "it", "name": "Italian"},
    }
    is_off = {name for name, value in settings.items() if value is False}
    assert is_off == {"apiKeys", "keyRequired", "suggestions", "textsLogged", "training"}


@pytest.mark.parametrize(
    ("limits", "texts"),
    [
        ({"max_texts": 0}, -1),
        ({"max_texts": 0, "requests_per_minute": 20}, 19),
        ({"max_texts": 5, "requests_per_minute": 20}, 5),
        ({"requests_per_minute": 1}, 1),
    ],
)
def test_the_limit_of_texts_fits_into_a_minute(limits: dict[str, int], texts: int) -> None:
    with TestClient(stub_app(**limits), base_url=BASE) as client:
        assert client.get("/frontend/settings").json()["textsLimit"] == texts


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/translate", 405, "Method Not Allowed"),
        ("PUT", "/translate", 405, "Method Not Allowed"),
        ("POST", "/languages", 405, "Method Not Allowed"),
        ("GET", "/nothing", 404, "Not Found"),
        ("POST", "/suggest", 403, "disabled"),
    ],
)
def test_other_errors_have_the_same_shape(client: TestClient, method: str, path: str, status: int, error: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert error in answer.json()["error"]


def test_the_description_of_the_api_is_there_as_json_and_as_a_page(client: TestClient) -> None:
    paths = client.get("/spec").json()["paths"]
    assert client.get("/openapi.json").json() == client.get("/spec").json()
    assert client.head("/openapi.json").status_code == 200
    assert {"/translate", "/detect", "/languages", "/translate_file", "/suggest", "/frontend/settings"} <= set(paths)
    deleted, created = paths["/v2/glossaries/{glossary}"]["delete"], paths["/v2/glossaries"]["post"]
    assert [{code for code in one["responses"] if code < "300"} for one in (deleted, created)] == [{"204"}, {"201"}]
    page = client.get("/docs").text
    assert "POST /translate" in page
    assert "<script" not in page
    assert "style=" not in page
    assert "http" not in page.replace("the HTTP API", "")
    assert client.get("/docs/style.css").headers["content-type"].startswith("text/css")


def test_the_answer_is_that_of_the_translator(served: tuple[Path, Path]) -> None:
    offline = Translator.load(served[0], device="cpu")
    texts = ["abc", "jig hid", "a b c d", "abc"]
    with TestClient(create_app(served, ServeConfig(workers=2, device="cpu")), base_url=BASE) as client:
        plain = client.post("/translate", json={"q": texts, "source": "en", "target": "it"}).json()
        extras = {"scores": True, "flags": True, "alignments": True, "alternatives": 3}
        full = client.post("/translate", json={"q": texts, "source": "en", "target": "it", **extras}).json()
        html = client.post("/translate", json={"q": "<b>abc</b>", "source": "en", "target": "it", "format": "html"})
    translations = list(offline.translations(texts, align="words"))
    assert plain == {"translatedText": [one.text for one in translations]}
    assert full["translatedText"] == plain["translatedText"]
    assert full["scores"] == [pytest.approx(one.confidence, abs=1e-3) for one in translations]
    assert [alignment["links"] for alignment in full["alignments"]] == [
        [list(link) for link in one.alignment.links] for one in translations if one.alignment
    ]
    for text, others in zip(full["translatedText"], full["alternatives"], strict=True):
        assert 1 <= len(set(others)) == len(others) <= 3
        assert text not in others
    assert html.json()["translatedText"].replace("<b>", "").replace("</b>", "").strip() == plain["translatedText"][0]


def test_a_model_that_is_no_pair_of_languages_is_asked_for_by_its_name(saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "dates")
    app = create_app([folder], ServeConfig(device="cpu"))
    with TestClient(app, base_url="http://localhost") as client:
        expected = Translator.load(folder)("abc")
        assert expected != "abc"
        for source in ("dates", "auto"):
            answer = client.post("/translate", json={"q": "abc", "source": source, "target": "dates"})
            assert answer.json()["translatedText"] == expected
        for source, target in (("und-x-dates", "und"), ("dates", "und"), ("en", "dates")):
            answer = client.post("/translate", json={"q": "abc", "source": source, "target": target})
            assert answer.status_code == 400
            assert answer.json()["error"].endswith("there is dates")
        answer = client.post("/v2/translate", json={"text": ["abc"], "source_lang": "EN", "target_lang": "DATES"})
        assert answer.status_code == 400
        assert answer.json()["message"].endswith("there is dates")
