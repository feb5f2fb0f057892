import asyncio
import logging

import pytest
from starlette.types import Message, Receive, Scope, Send

from allyouneed.apps.serve.disconnects import CancelOnDisconnect
from serve.stub import stub_app

pytestmark = pytest.mark.anyio
BODY: Message = {"type": "http.request", "body": b"x"}


class Client:
    """The two ends of a connection: what the client sends, and what it gets."""

    def __init__(self, *messages: Message) -> None:
        self.incoming: asyncio.Queue[Message] = asyncio.Queue()
        self.sent: list[Message] = []
        for message in messages:
            self.incoming.put_nowait(message)

    async def send(self, message: Message) -> None:
        self.sent.append(message)


async def test_a_client_that_leaves_cancels_its_request() -> None:
    client, cancelled, reading = Client(BODY), asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert await receive() == BODY
        reading.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    answering = asyncio.create_task(CancelOnDisconnect(app)({"type": "http"}, client.incoming.get, client.send))
    await reading.wait()
    client.incoming.put_nowait({"type": "http.disconnect"})
    await answering  # ends as if it had been answered
    assert cancelled.is_set()
    assert client.sent == []


@pytest.mark.parametrize("route", ["/translate", "/translate_file", "/v1/translate", "/v2/translate"])
@pytest.mark.parametrize(
    ("kind", "begun"),
    [
        ("application/json", b'{"q"'),
        ("multipart/form-data; boundary=b", b"--b"),
        ("application/x-www-form-urlencoded", b"q=a"),
    ],
)
async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error(
    route: str, kind: str, begun: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client({"type": "http.request", "body": begun, "more_body": True}, {"type": "http.disconnect"})
    scope = {
        "type": "http", "method": "POST", "path": route, "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", kind.encode())],
    }  # fmt: skip
    app = stub_app()
    with caplog.at_level(logging.INFO, "allyouneed.apps.serve"):
        await app(scope, client.incoming.get, client.send)
    assert client.sent == []
    assert [record.fields["status"] for record in caplog.records] == [499]  # type: ignore[attr-defined]


async def test_a_request_that_is_cancelled_otherwise_stays_cancelled() -> None:
    client, reading = Client(BODY), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        reading.set()
        await asyncio.sleep(60)

    answering = asyncio.create_task(CancelOnDisconnect(app)({"type": "http"}, client.incoming.get, client.send))
    await reading.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering


async def test_an_answer_is_sent_while_the_client_stays() -> None:
    client = Client({**BODY, "more_body": True}, BODY)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["more_body"]
        assert await receive() == BODY
        await send({"type": "http.response.start"})

    await CancelOnDisconnect(app)({"type": "http"}, client.incoming.get, client.send)
    assert client.sent == [{"type": "http.response.start"}]
