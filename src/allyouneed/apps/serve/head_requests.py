"""HEAD where GET is answered: the same status and headers, without the body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class AnswerHead:
    """ASGI middleware that lets the application answer HEAD as GET, and sends the headers alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; only one of the method HEAD is changed."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_headers(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, send_headers)
        finally:
            scope.update({**as_get, "method": "HEAD"})  # the log reads the route there
