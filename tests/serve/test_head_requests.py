"""HEAD is answered where GET is, over real connections: a body that is sent would be read as the next answer."""

import logging
from collections.abc import Iterator

import httpx
import pytest
from fastapi.testclient import TestClient

from serve.live import running
from serve.stub import stub_app


@pytest.fixture(scope="module")
def connection() -> Iterator[httpx.Client]:
    with running(stub_app()) as url, httpx.Client(base_url=url) as connection:
        yield connection


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/health", "/languages", "/spec", "/docs", "/nowhere"])
def test_head_has_the_status_and_the_headers_of_get_and_no_body(connection: httpx.Client, path: str) -> None:
    get, head = connection.get(path), connection.head(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    for name in ("Content-Type", "Content-Length", "ETag", "Content-Security-Policy"):
        assert head.headers.get(name) == get.headers.get(name)


def test_a_route_without_get_refuses_head(connection: httpx.Client) -> None:
    assert connection.head("/translate").status_code == connection.get("/translate").status_code == 405


def test_the_log_names_the_method_and_the_route(caplog: pytest.LogCaptureFixture) -> None:
    with (
        TestClient(stub_app(), base_url="http://localhost") as client,
        caplog.at_level(logging.INFO, "allyouneed.apps.serve"),
    ):
        client.head("/health")
    fields = [record.__dict__["fields"] for record in caplog.records if record.message == "request"]
    assert [(one["method"], one["route"]) for one in fields] == [("HEAD", "/health")]
