"""The common parts of report pages: the frame with its style and script, sections, tables and facts."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ...machine.checksums import policy_hash

AXES = """<fieldset class="axes"><legend>Axes</legend>
<label><input type="radio" name="axes" value="linear" checked> linear</label>
<label><input type="radio" name="axes" value="logarithmic"> logarithmic</label></fieldset>"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main{running}>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""  # noqa: E501

_RUNNING = """<p class="running" role="status">The run goes on; this page is of {now} and loads itself again.
<label><input type="checkbox" id="refresh" checked> every {seconds} seconds</label></p>"""


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of the page that moves: its HTML, and the style and script that it needs."""

    html: str = ""
    style: str = ""
    script: str = ""


NOTHING_MOVES = PagePart()

REFRESH = 10  # seconds between two checks for a newer report


def build_report_page(
    title: str, body: Iterable[str], *, running: bool = False, moving: PagePart = NOTHING_MOVES
) -> str:
    """Build a page that works offline. With `running`, it reloads itself until the run has ended.

    The body already has the HTML of the part `moving`; this function adds its style and its script.
    """
    folder = Path(__file__).parent
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    style, script = style + moving.style, script + moving.script
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    state = [_RUNNING.format(now=now, seconds=REFRESH)] if running else []
    return _PAGE.format(
        title=escape(title),
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
        running=f' data-refresh="{REFRESH}" data-written="{time.time():.0f}"' if running else "",
        body="\n".join([*state, *body]),
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Write names with their values, as boxes."""
    boxes = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{boxes}</dl>'


def pairs_table(rows: Iterable[tuple[str, str]]) -> str:
    """Write a table of names and values, both plain text."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th>{_text_cell(value)}</tr>' for name, value in rows)
    return f"<table>{body}</table>"


def wide_table(label: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, wraps: bool = False) -> str:
    """Write a table of plain text that scrolls sideways in its own region, which the keyboard can reach."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(map(_text_cell, rest)) + "</tr>" for first, *rest in rows
    )
    return (
        f'<div class="wide{" wraps" * wraps}" role="region" tabindex="0" aria-label="{escape(label)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _text_cell(text: str) -> str:
    return f'<td dir="auto">{escape(text)}</td>'


def section(title: str, *parts: str) -> str:
    """Write a part of the page under a heading."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str) -> str:
    """Write a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def details(summary: str, content: str, *, is_open: bool = False) -> str:
    """Write a part that the reader can open. `content` is HTML."""
    return f"<details{' open' if is_open else ''}><summary dir='auto'>{escape(summary)}</summary>{content}</details>"
