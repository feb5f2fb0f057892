"""The page of the server, and `/docs`, a page that describes the APIs.

The page consists of files of this package and the component of `explain`, which are read once, at the first request.
Names in requests are looked up in a dictionary; they are never paths on the disk. The page loads nothing from elsewhere
and has no inline script or style, because the Content-Security-Policy of `middleware.py` allows neither. `/docs` is a
plain page without scripts.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from ..explain.component import explanation_markup, explanation_script, explanation_style

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
    return {
        name: _File(content, _MEDIA_TYPES[Path(name).suffix], f'"{hashlib.sha256(content).hexdigest()[:20]}"')
        for name, content in files.items()
    }


@router.get("/")
def show_page(request: Request) -> Response:
    """Show the page."""
    return _answer(request, "index.html")


@router.get("/static/{name}")
def read_static_file(name: str, request: Request) -> Response:
    """Answer with a file that is part of the page."""
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    """Answer with a file, or 304 if the browser already has it. The browser asks each time and so gets new versions."""
    file = _files().get(name)
    if file is None:
        return Response(status_code=404)
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
table { border-collapse: collapse; margin: .5rem 0 1rem; }
td, th { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #8886; }
h3 { margin-top: 2rem; }
"""


@router.get("/docs")
async def show_docs(request: Request) -> HTMLResponse:
    """Show the routes by API, with their fields."""
    return HTMLResponse(render_docs(request.app.openapi()))


@router.get("/docs/style.css")
async def docs_style() -> Response:
    """Answer with the style of the page, because the Content-Security-Policy allows no inline style."""
    return Response(_STYLE, media_type="text/css")


def render_docs(description: dict[str, Any]) -> str:
    """Render an OpenAPI description as HTML."""
    sections: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            tag = (route.get("tags") or ["server"])[0]
            sections.setdefault(tag, []).append(_render_route(method.upper(), path, route, description))
    title = f"{escape(description['info']['title'])} {escape(description['info']['version'])}"
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(routes)}" for tag, routes in sections.items())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: the HTTP API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="docs/style.css"></head><body><main><h1>{title}: the HTTP API</h1>'
        f'<p>The same as <a href="spec">OpenAPI {escape(description["openapi"])}</a>.</p>{body}</main></body></html>'
    )


def _render_route(method: str, path: str, route: dict[str, Any], description: dict[str, Any]) -> str:
    content = route.get("requestBody", {}).get("content", {})
    schema = _resolve(next(iter(content.values()))["schema"], description) if content else {}
    fields = _render_fields(schema) if content else ""
    kinds = f"<p>Body: {escape(', '.join(content))}</p>" if content else ""
    answers = "; ".join(
        f"{escape(status)} {escape(answer.get('description', ''))}" for status, answer in route["responses"].items()
    )
    text = escape(route.get("description") or route.get("summary", ""))
    return f"<h3><code>{method} {escape(path)}</code></h3><p>{text}</p>{kinds}{fields}<p><small>{answers}</small></p>"


def _render_fields(schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_type_name(field))}</td>"
        f"<td>{'required' if name in schema.get('required', ()) else ''}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    )
    head = "<tr><th>field</th><th>type</th><th></th><th>meaning</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _type_name(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kinds = schema.get("type") or [_type_name(one) for one in schema.get("anyOf", ())]
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _resolve(schema: dict[str, Any], description: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return description["components"]["schemas"][name] if name else schema
