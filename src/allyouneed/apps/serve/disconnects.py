"""A client that goes away cancels its request, so that its texts leave the queue."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class CancelOnDisconnect:
    """ASGI middleware that cancels the application's work on a request when its client disconnects."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless its client leaves before."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, watcher = asyncio.current_task(), None
        assert request is not None
        gone = asyncio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()
            request.cancel()

        async def receive_body() -> Message:
            nonlocal watcher
            if watcher is not None:  # the body has been read: there is nothing more to come
                await gone.wait()
                return {"type": "http.disconnect"}
            message = await receive()
            if message["type"] == "http.disconnect":  # in the middle of the body
                gone.set()
                request.cancel()
                await asyncio.sleep(0)  # raises that
            elif not message.get("more_body"):
                watcher = asyncio.create_task(watch())
            return message

        try:
            await self._app(scope, receive_body, send)
        except asyncio.CancelledError:
            if not gone.is_set():
                raise
            request.uncancel()
        finally:
            if watcher is not None:
                watcher.cancel()
