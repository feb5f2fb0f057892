import json
import logging
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from allyouneed.apps.serve.app import create_app
from allyouneed.apps.serve.options import ServeConfig
from allyouneed.apps.serve.server import JsonFormatter
from serve.stub import stub_app

REQUEST = {"texts": ["abc", "dig hij"], "source": "en", "target": "it"}


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    formatter = JsonFormatter()
    return [json.loads(formatter.format(record)) for record in caplog.records if record.name == "allyouneed.apps.serve"]


def test_a_request_has_a_line_without_its_text(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "allyouneed.apps.serve"):
        answer = client.post("/v1/translate", json=REQUEST)
    (line,) = lines(caplog)
    assert line["request_id"] == answer.headers["X-Request-ID"]
    expected = {
        "level": "info", "message": "request", "method": "POST", "route": "/v1/translate", "status": 200, "texts": 2,
        "characters": 10,
    }  # fmt: skip
    assert expected.items() <= line.items()
    assert line.keys() - expected.keys() == {"time", "request_id", "seconds"}


def test_the_text_is_there_if_that_is_wanted(served: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(served, ServeConfig(device="cpu", log_text=True))
    with TestClient(app, base_url="http://localhost") as client, caplog.at_level(logging.INFO, "allyouneed.apps.serve"):
        client.post("/v1/translate", json=REQUEST)
    assert lines(caplog)[0]["text"] == ["abc", "dig hij"]


def test_each_text_is_there_once_by_whatever_way_it_comes(caplog: pytest.LogCaptureFixture) -> None:
    languages, deepl = {"source": "en", "target": "it"}, {"target_lang": "it", "source_lang": "en"}
    file = {"file": ("a.txt", b"Hello")}
    app = stub_app(log_text=True)
    with (
        TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client,
        caplog.at_level(logging.INFO, "allyouneed.apps.serve"),
    ):
        client.post("/translate", json={"q": "Hello", "alternatives": 2, **languages})
        client.post("/translate", json={"q": "Hello", "format": "html", **languages})
        client.post("/v1/stream", json={"text": "Hello", **languages})
        client.post("/v1/explain", json={"text": "Hello", **languages})
        client.post("/v2/translate", json={"text": ["Hello"], **deepl})
        client.post("/translate_file", data=languages, files=file)
        client.post("/v2/document", data=deepl, files=file)
    requests = [line for line in lines(caplog) if line["message"] == "request"]
    assert [(line["route"], line["text"]) for line in requests] == [(line["route"], ["Hello"]) for line in requests]
    assert len(requests) == 7


def test_a_line_break_cannot_forge_a_line() -> None:
    record = logging.LogRecord("allyouneed.apps.serve", logging.INFO, "", 0, 'x\n{"level": "error"}', (), None)
    assert len(JsonFormatter().format(record).splitlines()) == 1
