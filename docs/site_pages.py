"""What the site does with the walk's pages beyond Markdown, as a Sphinx extension.

Equations become MathML, so that a page needs neither a script nor a network; the map of Figure 1 is put into the page
itself, so that its boxes are links; and a file of ours stands beside its notes.
"""

import ast
import os
import re
import sys
from collections.abc import Sequence
from html import escape
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.append(str(Path(__file__).parent / "make"))
import live
import notebooks
from figure_1 import PAGES, figure_1
from pages import CIRCLED


def visit_math(writer: HTML5Translator, node: nodes.math) -> None:
    """Write an equation in a line of text."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write an equation in lines of its own; a narrow page puts neighbouring equations below each other."""
    parts = (convert(part, display="block") for part in node.astext().split(r"\qquad"))
    writer.body.append(f'<div class="equation">{"".join(parts)}</div>')
    raise nodes.SkipNode


def put_maps_into_pages(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Replace the picture of the map by the map itself, and put a small one on every page of the walk."""
    for image in list(tree.findall(nodes.image)):
        if Path(image["uri"]).name == "map.svg":
            image.replace_self(drawn_map(app, page))
    if page.startswith("walk/") and page != "walk/index":
        next(tree.findall(nodes.title)).parent.insert(1, drawn_map(app, page))


def drawn_map(app: Sphinx, page: str) -> nodes.raw:
    """Figure 1, whose boxes are links, and the page's own box stands out."""
    here = page.removeprefix("walk/")
    folder = app.builder.get_relative_uri(page, "walk/index").removesuffix("index.html")
    svg = figure_1(here if here in PAGES else "").svg().replace('href="', f'href="{folder}')
    return nodes.raw("", f'<div class="map{" small" * (here != page != "walk/index")}">{svg}</div>', format="html")


def put_parts_into_page(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Replace `<!-- live -->` and the like by the moving part of that name, whose files are in the folder `site`."""
    for comment in list(tree.findall(nodes.raw)):
        name = comment.astext().strip().removeprefix("<!-- ").removesuffix(" -->")
        if name in ("film", "live", "closely"):
            static = "../" * page.count("/") + "_static/"
            loaded = "".join(f'<script src="{static}{file}"></script>' for file in live.scripts(name))
            style = f'<link rel="stylesheet" href="{static}components.css">'
            comment.replace_self(nodes.raw("", style + live.markup(name) + loaded, format="html"))


def put_notes_beside_files(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Put every note of a file beside its line."""
    for code in list(tree.findall(nodes.literal_block)):
        after = iter(code.parent[code.parent.index(code) + 1 :])
        notes = next((node for node in after if not isinstance(node, nodes.raw)), None)
        if isinstance(notes, nodes.enumerated_list) and code["language"] == "py":
            notes.parent.remove(notes)
            code.replace_self(annotated(code.astext(), [note.children for note in notes]))


def annotated(code: str, notes: Sequence[Sequence[nodes.Node]]) -> list[nodes.Node]:
    """Cut a file into pieces: each line with a number and its note in a box, lines without a note folded."""
    lines = highlight(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines()
    lines = [
        re.sub(f" ([{CIRCLED}])", "\N{NO-BREAK SPACE}\\1", line) for line in lines
    ]  # a number is not alone in a line
    bare = code.splitlines()

    def pre(part: range, kind: str = "") -> str:
        spans = (f'<span style="--n:{len(bare[i]) - len(bare[i].lstrip())}">{lines[i] or " "}</span>' for i in part)
        return f'<pre class="{kind}">{"".join(spans)}</pre>' if part else ""

    pieces: list[nodes.Node | str] = ['<div class="beside highlight">']
    for start, end, names in folded_parts(code):
        if names:
            count = sum(1 for line in bare[start:end] if line.strip())
            title = f"<summary>{count} lines: {escape(', '.join(names))}</summary>"
            pieces.append(f"<details>{title}{pre(range(start, end))}</details>")
            continue
        numbers = [i for i in range(start, end) if number_in(bare[i])]
        pieces.append(pre(range(start, numbers[0] if numbers else end)))
        for line, after in pairwise([*numbers, end]):
            number = number_in(bare[line])
            pieces.append('<div class="noted"><div class="note" tabindex="0">')  # before its line, to float beside it
            pieces += [f"<b>{number}</b>", *notes[CIRCLED.index(number)], "</div>"]
            pieces.append(f"{pre(range(line, line + 1), 'line')}{pre(range(line + 1, after))}</div>")
    pieces.append("</div>")
    return [nodes.raw("", piece, format="html") if isinstance(piece, str) else piece.deepcopy() for piece in pieces]


def number_in(line: str) -> str:
    """Return the number of a note at the end of a line, or nothing."""
    return line[-1] if line and line[-1] in CIRCLED else ""


def folded_parts(code: str) -> list[tuple[int, int, list[str]]]:
    """Divide the file into parts, from line to line: open ones, and ones without a note, with the names in them."""
    lines = code.splitlines()
    statements: list[tuple[int, int, bool, str]] = []  # a class in its members; each with the lines before it
    for node in ast.parse(code).body:
        for member in node.body if isinstance(node, ast.ClassDef) else [node]:
            start, end = statements[-1][1] if statements else 0, member.end_lineno or 0
            while end < len(lines) and not lines[end]:
                end += 1
            is_open = any(number_in(line) or line.startswith("class ") for line in lines[start:end])
            statements.append((start, end, is_open, name_of_statement(member)))
    parts: list[tuple[int, int, list[str]]] = []
    for is_open, group in groupby(statements, itemgetter(2)):
        run = list(group)
        start, end = run[0][0], run[-1][1]
        names = [] if is_open or end - start < 4 else list(dict.fromkeys(name for *_, name in run))
        if parts and not names and not parts[-1][2]:
            start = parts.pop()[0]
        parts.append((start, end, names))
    return parts


def name_of_statement(node: ast.stmt) -> str:
    """Name a folded statement in the line that opens it."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.Import() | ast.ImportFrom():
            return "imports"
        case ast.Expr():
            return "docstring"
    return "constants"


def put_colab_beside_notebook(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Add a link to Colab if the address of the repository is known, and Colab can open its notebooks."""
    address = notebooks.colab_address(Path(page).name, os.environ.get("PROJECT_URL", ""))
    for link in list(tree.findall(addnodes.download_reference)):
        if address and link["reftarget"].endswith(".ipynb"):
            link.parent += [nodes.Text(" · "), nodes.reference("", "Open in Colab", refuri=address)]


def hide_contents(app: Sphinx, tree: nodes.document) -> None:
    """Hide the contents on a page with a file and its notes, which needs the space at its right."""
    if app.env.docname.startswith("walk/"):
        app.env.metadata[app.env.docname]["hide-toc"] = ""


def level_captions(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Give the captions of the sidebar, which the theme makes headings, the level that a heading must have."""
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
            'role="heading"', 'role="heading" aria-level="2"'
        )


def write_parts(app: Sphinx) -> None:
    """Write the scripts of moving parts before the site's files are copied."""
    live.write_site()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register these functions."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    app.connect("builder-inited", write_parts)
    app.connect("doctree-read", hide_contents)
    app.connect("doctree-resolved", put_maps_into_pages)
    app.connect("doctree-resolved", put_parts_into_page)
    app.connect("doctree-resolved", put_notes_beside_files)
    app.connect("doctree-resolved", put_colab_beside_notebook)
    app.connect("html-page-context", level_captions, priority=900)  # after the theme
    return {"parallel_read_safe": True}
