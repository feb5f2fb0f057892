"""Glossaries over HTTP: their limits, and a file that another program uses."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from allyouneed.apps.serve.glossary_store import GlossaryStore, StoredGlossary
from messages import numbers_in
from serve.live import running
from serve.stub import stub_app
from waiting import PATIENCE

BASE = "http://localhost"


def dictionary(terms: str) -> dict[str, str]:
    return {"source_lang": "en", "target_lang": "it", "entries": terms}


def test_terms_that_are_added_count_for_the_limit() -> None:
    with TestClient(stub_app(max_terms=3), base_url=BASE) as client:
        body = {"name": "mine", "dictionaries": [dictionary("a\tb\nc\td")]}
        glossary = client.post("/v3/glossaries", json=body).json()["glossary_id"]
        path = f"/v3/glossaries/{glossary}"
        assert client.patch(path, json={"dictionaries": [dictionary("a\tz\ne\tf")]}).status_code == 200
        refused = client.patch(path, json={"name": "other", "dictionaries": [dictionary("g\th")]})
        assert refused.status_code == 400
        assert numbers_in(refused.json()["message"]) == [4, 3]
        stored = client.get(path).json()
    assert (stored["name"], stored["dictionaries"][0]["entry_count"]) == ("mine", 3)  # nothing of it was changed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"entries": "a\tb\na\tc"}, "line 2 of 'entries' has 'a' "),
        ({"entries": "a b\tb\n\na  b \tb"}, "line 3 of 'entries' has 'a b' "),
        ({"entries": "a\tb\ten\tit"}, "line 1 of 'entries' "),
        ({"entries": "a,b,c", "entries_format": "csv"}, "line 1 of 'entries' "),
        ({"target_lang": "en"}, " en-en"),
        ({"source_lang": "it", "target_lang": "de"}, " it-de"),
    ],
)
def test_no_term_is_lost_silently(change: dict[str, str], reason: str) -> None:
    body = dictionary("a\tb") | change
    with TestClient(stub_app(), base_url=BASE) as client:
        for answer in (
            client.post("/v2/glossaries", json={"name": "mine", **body}),
            client.post("/v3/glossaries", json={"name": "mine", "dictionaries": [body]}),
        ):
            assert answer.status_code == 400
            assert reason in answer.json()["message"]


def test_a_pair_of_languages_has_one_dictionary() -> None:
    with TestClient(stub_app(), base_url=BASE) as client:
        body = {"name": "mine", "dictionaries": [dictionary("a\tb"), dictionary("c\td")]}
        answer = client.post("/v3/glossaries", json=body)
    assert (answer.status_code, "has en-it twice" in answer.json()["message"]) == (400, True)


def test_requests_about_glossaries_and_usage_count_for_the_limit() -> None:
    with TestClient(stub_app(requests_per_minute=2), base_url=BASE) as client:
        assert client.get("/v2/glossaries").status_code == 200
        assert client.get("/v2/usage").status_code == 200
        for answer in (client.post("/v3/glossaries", json={}), client.get("/v2/glossaries"), client.get("/v2/usage")):
            assert (answer.status_code, answer.json()) == (429, {"message": "Slowdown: 2 per 1 minute"})


def test_a_file_that_another_program_writes_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.sqlite"
    with TestClient(stub_app(glossaries=str(path)), base_url=BASE) as client:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert client.get("/v3/glossaries").json() == {"glossaries": []}
        other.close()


def test_a_locked_file_holds_up_no_other_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, listing, list_all = tmp_path / "glossaries.sqlite", threading.Event(), GlossaryStore.list_all

    def noted(store: GlossaryStore, account: str) -> list[StoredGlossary]:
        listing.set()
        return list_all(store, account)

    monkeypatch.setattr(GlossaryStore, "list_all", noted)
    with running(stub_app(glossaries=str(path))) as url, ThreadPoolExecutor(1) as thread:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        waiting = thread.submit(httpx.get, f"{url}/v3/glossaries", timeout=PATIENCE)
        assert listing.wait(PATIENCE)
        assert httpx.get(f"{url}/languages", timeout=PATIENCE).status_code == 200
        assert not waiting.done()
        other.close()
        assert waiting.result().status_code == 200
