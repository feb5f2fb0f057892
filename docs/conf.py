"""How the site is built: `make docs`, which is `sphinx-build docs build/site`."""

import re
import sys
from itertools import groupby
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "make")]

import reference  # noqa: E402

project = "allyouneed"
author = "the authors of allyouneed"
extensions = ["myst_parser", "sphinx.ext.autodoc", "site_pages"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
exclude_patterns = ["make", "pictures", "notebooks"]
smartquotes = False  # a setting is copied with the quotes it is written with
html_theme = "furo"
html_title = "allyouneed"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = html_domain_indices = False
html_show_copyright = False
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]

add_module_names = False
autodoc_inherit_docstrings = False  # torch's docstring of `Module.forward` does not describe our parts
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88


def plain_text(text: str) -> str:
    """Write plain text as reStructuredText: names in backticks become literals, other characters stay."""
    *pairs, last = re.split(r"`([^`]+)`", text)
    escaped = [re.sub(r"([\\*_|`])", r"\\\1", part) for part in (*pairs[::2], last)]
    literals = [f"\\ ``{part}``\\ " for part in pairs[1::2]] + [""]
    return "".join(part for both in zip(escaped, literals, strict=True) for part in both)


def render_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Render a docstring as plain text, and keep an indented block in it, such as the shapes, as it is."""
    rendered: list[str] = []
    for indented, block in groupby(lines, lambda line: line.startswith("    ")):
        text = "\n".join(block)
        rendered += f"\n::\n\n{text}\n".split("\n") if indented else plain_text(text).split("\n")
    lines[:] = rendered


def skip_member(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Skip the fields of a named tuple that have only the docstring that Python made up."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def write_reference(app: Sphinx) -> None:
    """Write the reference pages, before the site's pages are looked for."""
    reference.write()


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", render_docstring)
    app.connect("autodoc-skip-member", skip_member)
