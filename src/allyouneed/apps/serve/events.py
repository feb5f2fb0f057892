"""Server-sent events, for answers in several parts and for work that reports its progress."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fastapi.responses import StreamingResponse

from ...errors import AllYouNeedError
from .refusals import as_refusal

EVENT_STREAM = "text/event-stream"
Progress = Callable[[int, int], None]  # how many parts are done, and how many there are


def event(data: dict[str, Any], *, name: str = "") -> str:
    """Write an event with JSON as its data. An event without a name is a "message"."""
    prefix = f"event: {name}\n" if name else ""
    return f"{prefix}data: {json.dumps(data, ensure_ascii=False)}\n\n"


def event_response(events: AsyncIterator[str]) -> StreamingResponse:
    """Answer with a stream of events."""
    # Proxies must not collect the answer before they pass it on, which would make the stream useless.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type=EVENT_STREAM, headers=headers)


async def progress_response(work: Callable[[Progress], Awaitable[dict[str, Any]]]) -> StreamingResponse:
    """Answer with events: `done` and `total` whenever they change, and the result of `work` at the end.

    The last event is named `done` and has the result, or `error` and has the text and status of a refusal. A refusal
    before the first progress is raised instead, so that the answer has its status. The work ends when the client
    leaves.
    """
    updates: asyncio.Queue[tuple[int, int] | None] = asyncio.Queue()
    task = asyncio.ensure_future(work(lambda done, total: updates.put_nowait((done, total))))
    task.add_done_callback(lambda _: updates.put_nowait(None))
    try:
        first = await updates.get()
        if first is None:
            await task
    except BaseException:
        task.cancel()
        raise

    async def events() -> AsyncIterator[str]:
        update = first
        try:
            while update is not None:
                yield event({"done": update[0], "total": update[1]})
                update = await updates.get()
            yield event(await task, name="done")
        except AllYouNeedError as error:
            refusal = as_refusal(error)
            yield event({"error": str(refusal), "status": refusal.status}, name="error")
        finally:
            task.cancel()

    return event_response(events())
