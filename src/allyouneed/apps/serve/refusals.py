"""Requests that are refused: the status, the text and the form of the answer, for every API."""

import logging
import math
import re
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ...errors import (
    AllYouNeedError,
    BundleError,
    DataError,
    DeadlineExceeded,
    DocumentError,
    MissingExtraError,
    OutputError,
    Overloaded,
)

_LOG = logging.getLogger("allyouneed.apps.serve")
# Options of the command; fields of a request have the same names.
_OPTIONS = re.compile(r"--(column|encoding|into|numbers)\b")


class Refusal(AllYouNeedError):  # noqa: N818  an answer, not a mistake of the program
    """A request that is refused, with the status of its answer.

    `retry_after` is the number of seconds after which the same request may succeed. `close` closes the connection,
    because the rest of the request is not read.
    """

    def __init__(self, status: int, message: str, *, retry_after: float | None = None, close: bool = False) -> None:
        super().__init__(message)
        self.status, self.retry_after, self.close = status, retry_after, close


class QuotaRefusal(Refusal):
    """Raised when the characters of a day are used up. DeepL has a separate status for this."""


def install_error_handlers(app: FastAPI) -> None:
    """Answer every refused request of `app` in the form of its API."""
    app.add_exception_handler(AllYouNeedError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    app.add_exception_handler(RequestValidationError, _answer_invalid)


def error_response(
    path: str, status: int, message: str, *, retry_after: float | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Write an error in the form of DeepL (for paths under /v2 and /v3), or else of LibreTranslate."""
    key = "message" if _is_deepl(path) else "error"
    answer = JSONResponse({key: message.encode(errors="backslashreplace").decode()}, status, headers)
    if retry_after is not None:
        answer.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    return answer


def _is_deepl(path: str) -> bool:
    return path.startswith(("/v2/", "/v3/"))


def as_refusal(error: Exception) -> Refusal:
    """Turn an error of this program into a refusal with the status of its answer."""
    match error:
        case Refusal():
            return error
        case Overloaded(retry_after=seconds):
            return Refusal(503, str(error), retry_after=seconds)
        case DeadlineExceeded():
            return Refusal(504, str(error), retry_after=1)
        case MissingExtraError():
            _LOG.error("%s", error)
            return Refusal(501, "this server does not have the library that this needs; its log names it")
        case DocumentError():
            return Refusal(400, _OPTIONS.sub(r"the field \1", str(error)))
        case ValueError() | DataError():  # InputError and ConfigError are ValueErrors: the request is wrong
            return Refusal(400, str(error))
        case OutputError():
            _LOG.error("%s", error)
            return Refusal(503, "the server cannot write this to its disk; its log says more", retry_after=60)
        case BundleError():  # the bundle was complete when the server started
            _LOG.error("%s", error)
            return Refusal(503, "this model cannot be loaded now; the log of the server says more", retry_after=60)
    _LOG.error("%s: %s", type(error).__name__, error)
    return Refusal(500, "this model cannot be used; the log of the server says more")


async def _answer_error(request: Request, error: Exception) -> JSONResponse:
    refusal = as_refusal(error)
    if isinstance(refusal, QuotaRefusal) and _is_deepl(request.url.path):
        refusal = Refusal(456, "Quota Exceeded", retry_after=refusal.retry_after)
    headers = {"Connection": "close"} if refusal.close else None
    return error_response(
        request.url.path, refusal.status, str(refusal), retry_after=refusal.retry_after, headers=headers
    )


async def _answer_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return error_response(request.url.path, error.status_code, str(error.detail), headers=error.headers)


async def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]  # its "input" holds text of the request and is not repeated
    where = ".".join(str(part) for part in first["loc"])
    return error_response(request.url.path, 422, f"Invalid request: {where}: {first['msg']}")
