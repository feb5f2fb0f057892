import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from allyouneed import Translator
from allyouneed.apps.explain import trace_translation
from allyouneed.apps.explain.page_data import build_page_data
from allyouneed.apps.serve.native import MAX_EXPLAINED_CHARACTERS
from allyouneed.apps.serve.refusals import error_response
from messages import numbers_in
from serve.stub import stub_app


def test_the_answer_is_that_of_the_translator(client: TestClient, served: tuple[Path, Path]) -> None:
    texts = ["abc", "", "jig hid", "a b c d"]
    answer = client.post("/v1/translate", json={"texts": texts, "source": "en", "target": "it"})
    assert answer.status_code == 200
    offline = Translator.load(served[0], device="cpu").translate(texts)
    assert [one["text"] for one in answer.json()["translations"]] == offline


def test_alternatives_begin_with_the_prefix_and_words_are_aligned(client: TestClient) -> None:
    request = {
        "texts": ["abc def"],
        "source": "en",
        "target": "it",
        "align": "words",
        "prefix": "ab",
        "alternatives": 3,
    }
    (one,) = client.post("/v1/translate", json=request).json()["translations"]
    assert len(one["alternatives"]) == 2
    assert all(text.startswith("ab") for text in [one["text"], *(other["text"] for other in one["alternatives"])])
    assert one["alignment"]["source"] == ["abc", "def"]
    assert one["alignment"]["target"] == one["text"].split()
    assert one["tokens"] > 2
    assert one["log_probability"] < 0


def test_each_text_may_have_its_prefix(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allyouneed.apps.serve.scheduler.SPLIT_CHARACTERS", 4)  # so that the texts are split apart
    request = {"texts": ["abc", "abc", "dig"], "source": "en", "target": "it", "prefix": ["ab", "", "j"]}
    answer = client.post("/v1/translate", json=request).json()["translations"]
    for text, prefix, one in zip(request["texts"], request["prefix"], answer, strict=True):
        alone = client.post("/v1/translate", json={**request, "texts": [text], "prefix": prefix})
        assert [other["text"] for other in alone.json()["translations"]] == [one["text"]]
        assert one["text"].startswith(prefix)
    refused = client.post("/v1/translate", json={**request, "prefix": ["ab"]})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("prefix ")
    assert numbers_in(refused.json()["error"]) == [3, 1]


def test_a_stream_is_server_sent_events_that_end_with_the_whole_text(
    client: TestClient, served: tuple[Path, Path]
) -> None:
    answer = client.post("/v1/stream", json={"text": "abc dig", "source": "en", "target": "it"})
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    *pieces, done, end = answer.text.split("\n\n")
    assert end == ""
    name, data = done.split("\n")
    assert name == "event: done"
    expected = "".join(Translator.load(served[0], device="cpu").stream("abc dig"))
    assert json.loads(data.removeprefix("data: ")) == {"text": expected}
    assert len(pieces) > 1
    assert "".join(json.loads(piece.removeprefix("data: "))["text"] for piece in pieces) == expected


def test_what_cannot_be_streamed_has_the_status_of_a_refusal(client: TestClient) -> None:
    answer = client.post("/v1/stream", json={"text": "xyz", "source": "en", "target": "it"})
    assert answer.status_code == 400
    assert "vocabulary" in answer.json()["error"]


def test_the_limits_are_those_of_the_server() -> None:
    def status(texts: int, alternatives: int, **settings: int) -> tuple[int, list[float]]:
        body = {"texts": ["a"] * texts, "source": "en", "target": "it", "alternatives": alternatives}
        with TestClient(stub_app(**settings), base_url="http://localhost") as client:
            answer = client.post("/v1/translate", json=body)
        return answer.status_code, numbers_in(answer.json().get("error", ""))

    assert status(1, 21, max_alternatives=30)[0] == 200
    assert status(1, 6, max_alternatives=5) == (400, [5])
    assert status(10_001, 0, max_texts=0)[0] == 200
    assert status(4, 0, max_texts=3) == (400, [4, 3])


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        ("/v1/translate", {"texts": ["abc", "a\ud800"]}),
        ("/v1/translate", {"texts": ["abc"], "prefix": "\ud800"}),
        ("/v1/translate", {"texts": ["abc"], "source": "e\udc00"}),
        ("/v1/translate", {"texts": ["abc"], "\ud800": ""}),
        ("/v1/stream", {"text": "a\ud800"}),
        ("/v1/explain", {"text": "a\ud800"}),
        ("/translate", {"q": "a\ud800"}),
    ],
)
def test_half_of_a_surrogate_pair_is_refused(client: TestClient, route: str, fields: dict[str, object]) -> None:
    content = json.dumps({"source": "en", "target": "it", **fields})
    answer = client.post(route, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "surrogate" in answer.json()["error"]


def test_every_error_can_be_written() -> None:
    assert json.loads(bytes(error_response("/v1/translate", 400, "e\ud800 not supported").body)) == {
        "error": "e\\ud800 not supported"
    }


def test_an_empty_text_streams_nothing(client: TestClient) -> None:
    answer = client.post("/v1/stream", json={"text": "", "source": "en", "target": "it"})
    assert answer.text == 'event: done\ndata: {"text": ""}\n\n'


@pytest.mark.parametrize("glossary", [{"a": ""}, {" ": "a"}, {"\u200b": "a"}, {"a": "\u200b"}])
@pytest.mark.parametrize("route", ["/v1/translate", "/v1/stream", "/translate", "/v2/translate"])
def test_a_glossary_of_blanks_is_the_clients_mistake(client: TestClient, route: str, glossary: dict[str, str]) -> None:
    texts = {"texts": ["abc"]} if route == "/v1/translate" else {"text": "abc"}
    body = {"q": "abc"} if route == "/translate" else texts
    answer = client.post(route, json={**body, "source": "en", "target": "it", "glossary": glossary})
    assert answer.status_code in (200, 400), answer.text


def explain(client: TestClient, text: str, **languages: str) -> tuple[int, dict[str, object]]:
    answer = client.post("/v1/explain", json={"text": text, "source": "en", "target": "it", **languages})
    return answer.status_code, answer.json()


def test_it_is_the_data_of_the_page_of_explain(client: TestClient, served: tuple[Path, Path]) -> None:
    status, answer = explain(client, "abc")
    assert status == 200
    translator = Translator.load(served[0], device="cpu")
    assert answer == json.loads(json.dumps(build_page_data(trace_translation(translator, "abc"), translator)))
    assert answer["output"] == translator("abc")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "explain needs"),
        ("a" * (MAX_EXPLAINED_CHARACTERS + 1), "301 characters"),
        ("a" * MAX_EXPLAINED_CHARACTERS, " most 40"),
        ("é", "vocabulary"),
    ],
    ids=["empty", "too many characters", "too many tokens", "unknown"],
)
def test_a_text_that_cannot_be_explained_is_refused(client: TestClient, text: str, error: str) -> None:
    status, answer = explain(client, text)
    assert status == 400
    assert error in str(answer["error"])


def test_a_pair_without_a_model_is_refused(client: TestClient) -> None:
    status, answer = explain(client, "abc", target="de")
    assert (status, str(answer["error"]).endswith("there is en-it, it-en")) == (400, True)


def test_a_queue_that_is_full_refuses_at_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    app: Any = client.app
    monkeypatch.setattr(app.state.server.scheduler, "_accepted", 10**6)
    status, answer = explain(client, "abc")
    assert status == 503
    assert "waiting" in str(answer["error"])
