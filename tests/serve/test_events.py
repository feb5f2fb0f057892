"""A document's progress as server-sent events, and how work ends that says how far it is."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from allyouneed.apps.serve.events import EVENT_STREAM, Progress, progress_response
from allyouneed.apps.serve.refusals import Refusal
from allyouneed.errors import InputError
from serve.stub import stub_app
from waiting import PATIENCE

HEADERS = {"Accept": EVENT_STREAM}
LANGUAGES = {"source": "en", "target": "it"}


def read_events(text: str) -> list[tuple[str, Any]]:
    parts = [part.rpartition("data: ") for part in text.split("\n\n") if part]
    return [(name.removeprefix("event: ").strip(), json.loads(data)) for name, _, data in parts]


def upload(client: TestClient, name: str, content: str) -> Any:
    return client.post("/translate_file", data=LANGUAGES, files={"file": (name, content.encode())}, headers=HEADERS)


def test_a_document_says_how_many_sentences_are_translated() -> None:
    with TestClient(stub_app(), base_url="http://localhost") as client:
        answer = upload(client, "a.txt", "".join(f"Line {number}x\n\n" for number in range(150)))
        *progress, (name, last) = read_events(answer.text)
        assert {(one, data["total"]) for one, data in progress} == {("", 150)}
        done = [data["done"] for _, data in progress]
        assert (done[0], done[-1]) == (0, 150)
        parts = [after - before for before, after in itertools.pairwise(done)]
        assert sorted(parts) == [22, 64, 64]  # whichever part is finished first
        assert name == "done"
        assert client.get(last["translatedFileUrl"]).text.startswith("lINE 0X\n\nlINE 1X")


def test_what_is_refused_before_it_begins_has_its_status_and_later_an_event() -> None:
    with TestClient(stub_app(), base_url="http://localhost") as client:
        broken = upload(client, "a.json", "{")
        assert (broken.status_code, "JSON" in broken.json()["error"]) == (400, True)
        (_, zero), (name, data) = read_events(upload(client, "a.txt", "refuse!").text)
        assert (zero["done"], name, data["status"]) == (0, "error", 400)
        assert data["error"].startswith("line 1: ")
        (last,) = read_events(client.post("/translate_file", data={"source": "it", "target": "it"},
                                          files={"file": ("a.txt", b"a")}, headers=HEADERS).text)  # fmt: skip
        assert last[0] == "done"  # nothing was to translate


@pytest.mark.anyio
async def test_work_whose_client_leaves_is_cancelled() -> None:
    ended = asyncio.Event()

    async def work(on_progress: Progress) -> dict[str, Any]:
        on_progress(0, 1)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    events = (await progress_response(work)).body_iterator
    assert '"total": 1' in str(await anext(aiter(events)))
    await events.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(ended.wait(), PATIENCE)


@pytest.mark.anyio
@pytest.mark.parametrize("error", [Refusal(413, "too large"), InputError("no")])
async def test_an_error_before_any_progress_is_raised(error: Exception) -> None:
    async def work(_: Progress) -> dict[str, Any]:
        raise error

    with pytest.raises(type(error)):
        await progress_response(work)
