"""What the site does with the walk's pages beyond Markdown, as a Sphinx extension.

Equations become MathML, so that a page needs neither a script nor a network; the map of Figure 1 is put into the page
itself, so that its boxes are links; and a file of ours stands beside its notes.
"""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.append(str(Path(__file__).parent / "make"))
import live
from figure_1 import PAGES, figure_1


def visit_math(writer: HTML5Translator, node: nodes.math) -> None:
    """An equation in a line of text."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(writer: HTML5Translator, node: nodes.math_block) -> None:
    """An equation in lines of its own."""
    writer.body.append(f'<div class="equation">{convert(node.astext(), display="block")}</div>')
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
    """Where a page says `<!-- live -->` or the like, put what moves: the files of it are in the folder `site`."""
    for comment in list(tree.findall(nodes.raw)):
        name = comment.astext().strip().removeprefix("<!-- ").removesuffix(" -->")
        if name in ("film", "live", "closely"):
            static = "../" * page.count("/") + "_static/"
            loaded = "".join(f'<script src="{static}{file}"></script>' for file in live.scripts(name))
            style = f'<link rel="stylesheet" href="{static}components.css">'
            comment.replace_self(nodes.raw("", style + live.markup(name) + loaded, format="html"))


def put_notes_beside_files(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Let the style sheet find a file and its notes."""
    for code in list(tree.findall(nodes.literal_block)):
        after = iter(code.parent[code.parent.index(code) + 1 :])
        notes = next((node for node in after if not isinstance(node, nodes.raw)), None)
        if isinstance(notes, nodes.enumerated_list) and code["language"] == "py":
            notes.parent.remove(notes)
            code.replace_self(nodes.container("", code.deepcopy(), notes, classes=["beside"]))


def hide_contents(app: Sphinx, tree: nodes.document) -> None:
    """A page with a file and its notes needs the space at its right for these."""
    if app.env.docname.startswith("walk/"):
        app.env.metadata[app.env.docname]["hide-toc"] = ""


def level_captions(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Give the captions of the sidebar, which the theme makes headings, the level that a heading must have."""
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
            'role="heading"', 'role="heading" aria-level="2"'
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all this."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    app.connect("doctree-read", hide_contents)
    app.connect("doctree-resolved", put_maps_into_pages)
    app.connect("doctree-resolved", put_parts_into_page)
    app.connect("doctree-resolved", put_notes_beside_files)
    app.connect("html-page-context", level_captions, priority=900)  # after the theme
    return {"parallel_read_safe": True}
