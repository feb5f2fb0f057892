"""`/docs`: the description of the APIs as one plain page, without scripts and without anything from a network."""

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)

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
    """The routes by API, with their fields."""
    return HTMLResponse(render_docs(request.app.openapi()))


@router.get("/docs/style.css")
async def docs_style() -> Response:
    """The style of the page; the content security policy allows none inside it."""
    return Response(_STYLE, media_type="text/css")


def render_docs(description: dict[str, Any]) -> str:
    """An OpenAPI description as HTML."""
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
