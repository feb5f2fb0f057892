"""The page of the server: files of this package and the component of `explain`, read once, for the first request.

The names in requests are looked up in a dictionary; none of them is a path on the disk. The page loads nothing from
elsewhere and has no inline script or style: the Content-Security-Policy of `middleware.py` allows neither.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from fastapi import APIRouter, Request, Response

from ..explain.page import explanation_markup, explanation_script, explanation_style

router = APIRouter(include_in_schema=False)

_MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    etag: str


@cache
def _files() -> dict[str, _File]:
    files = {file.name: file.read_bytes() for file in resources.files(__package__).joinpath("static").iterdir()}
    files["index.html"] = files["index.html"].replace(b"<!-- explanation -->", explanation_markup().encode())
    files |= {"explain.js": explanation_script().encode(), "explain.css": explanation_style().encode()}
    return {name: _with_type(name, content) for name, content in files.items()}


def _with_type(name: str, content: bytes) -> _File:
    return _File(content, _MEDIA_TYPES[Path(name).suffix], f'"{hashlib.sha256(content).hexdigest()[:20]}"')


@router.get("/")
def show_page(request: Request) -> Response:
    """The page."""
    return _answer(request, "index.html")


@router.get("/static/{name}")
def read_static_file(name: str, request: Request) -> Response:
    """A file that the page is made of."""
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    """A file, or 304 where the browser has it already: it asks each time, so a new version is seen at once."""
    file = _files().get(name)
    if file is None:
        return Response(status_code=404)
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
