"""The pages of the walk as notebooks, docs/notebooks/*.ipynb: [PROJECT_URL=https://…] python docs/make/notebooks.py

Text becomes cells of Markdown with their pictures, and every block of Python that a test runs becomes a cell of code;
what it prints is in the block's comments. With the address of the repository a notebook installs the package from it,
and on GitHub it opens in Colab.
"""

import os
import re
from base64 import b64encode
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

WALK = Path(__file__).parent.parent / "walk"
NOTEBOOKS = WALK.parent / "notebooks"
_CODE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_PROMISE = re.compile(r"^( *print\(.*\)) *# (.+)$", re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\]]*)\]\(\.\./pictures/([\w.-]+)\)")
_INTRODUCTION = """\
This notebook was made from [the page](../walk/{name}.md). It needs `allyouneed` installed. The next cell trains the
model of the examples, in well under a minute, unless it is in the folder `runs/dates` already."""
_INSTALL = """
try:
    import allyouneed
except ImportError:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "git+{url}"], check=True)"""
_PREPARE = """\
import subprocess
import sys
from pathlib import Path
{install}
if not Path("runs/dates").exists():
    subprocess.run([sys.executable, "-m", "allyouneed", "demo"], check=True)"""


def notebook(name: str, page: str, url: str = "") -> str:
    """Make the notebook of a page, as JSON; `url` is the address of the repository."""
    badge = colab_address(name, url)
    introduction = _INTRODUCTION.format(name=name)
    if badge:
        picture = "https://colab.research.google.com/assets/colab-badge.svg"
        introduction = f"[![Open in Colab]({picture})]({badge})\n\n{introduction}"
    prepare = _PREPARE.format(install=_INSTALL.format(url=url) if url else "")
    cells = [new_markdown_cell(introduction), new_code_cell(prepare)]
    for index, part in enumerate(_CODE.split(_for_notebook(page))):
        if part.strip():
            cells.append(_code_cell(part.strip()) if index % 2 else _text_cell(part.strip()))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # random ones would change with every run
        if url and cell.cell_type == "markdown":
            cell.source = cell.source.replace("](../", f"]({url}/blob/HEAD/docs/")
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    written: str = nbformat.writes(new_notebook(cells=cells, metadata={"kernelspec": kernel, "repository": url}))
    return written + "\n"


def colab_address(name: str, url: str) -> str:
    """Return where Colab opens the notebook of a repository on GitHub; empty for another."""
    host, _, repository = url.rstrip("/").partition("github.com/")
    if host != "https://":
        return ""
    return f"https://colab.research.google.com/github/{repository}/blob/HEAD/docs/notebooks/{name}.ipynb"


def _code_cell(code: str) -> nbformat.NotebookNode:
    printed = "".join(f"{line}\n" for _, line in _PROMISE.findall(code))
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    return new_code_cell(_PROMISE.sub(lambda match: match[1].rstrip(), code), outputs=outputs)


def _text_cell(text: str) -> nbformat.NotebookNode:
    cell = new_markdown_cell(_PICTURE.sub(r"![\1](attachment:\2)", text))
    if names := [name for _, name in _PICTURE.findall(text)]:
        folder = WALK.parent / "pictures"
        cell.attachments = {
            name: {"image/svg+xml": b64encode((folder / name).read_bytes()).decode("ascii")} for name in names
        }
    return cell


def _for_notebook(page: str) -> str:
    page = re.sub(r"^<!-- .* -->\n", "", page, flags=re.MULTILINE)
    page = re.sub(r"^\[This page as a notebook\].*\n", "", page, flags=re.MULTILINE)
    page = re.sub(
        r"^<details><summary>(.*)</summary>$", r"**\1**", page, flags=re.MULTILINE
    )  # code cells cannot be in it
    page = re.sub(r"^</details>\n", "", page, flags=re.MULTILINE)
    return re.sub(r"\]\(([\w-]+\.md[^)]*)\)", r"](../walk/\1)", page)


def pages() -> dict[str, str]:
    """Return the names and texts of the pages that link to their notebook."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(WALK.glob("*.md"))}
    return {name: text for name, text in texts.items() if f"(../notebooks/{name}.ipynb)" in text}


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for name, page in pages().items():
        (NOTEBOOKS / f"{name}.ipynb").write_text(
            notebook(name, page, os.environ.get("PROJECT_URL", "")), encoding="utf-8"
        )
        print(NOTEBOOKS / f"{name}.ipynb")
