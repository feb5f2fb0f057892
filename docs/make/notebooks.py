"""The pages of the walk as notebooks, docs/notebooks/*.ipynb: python docs/make/notebooks.py

Text becomes cells of Markdown, and every block of Python that a test runs becomes a cell of code.
"""

import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

WALK = Path(__file__).parent.parent / "walk"
NOTEBOOKS = WALK.parent / "notebooks"
_CODE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_INTRODUCTION = """\
This notebook was made from [the page](../walk/{name}.md). It needs `allyouneed` installed. The next cell trains the
model of the examples, in well under a minute, unless it is in the folder `runs/dates` already."""
_TRAIN = """\
import subprocess
import sys
from pathlib import Path

if not Path("runs/dates").exists():
    subprocess.run([sys.executable, "-m", "allyouneed", "demo"], check=True)
"""


def notebook(name: str, page: str) -> str:
    """The notebook of a page, as JSON."""
    cells = [new_markdown_cell(_INTRODUCTION.format(name=name)), new_code_cell(_TRAIN.rstrip())]
    for index, part in enumerate(_CODE.split(_for_notebook(page))):
        if part.strip():
            cells.append((new_code_cell if index % 2 else new_markdown_cell)(part.strip()))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # random ones would change with every run
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    written: str = nbformat.writes(new_notebook(cells=cells, metadata=kernel))
    return written + "\n"


def _for_notebook(page: str) -> str:
    page = re.sub(r"^<!-- .* -->\n", "", page, flags=re.MULTILINE)
    page = re.sub(r"^\[This page as a notebook\].*\n", "", page, flags=re.MULTILINE)
    page = re.sub(
        r"^<details><summary>(.*)</summary>$", r"**\1**", page, flags=re.MULTILINE
    )  # code cells cannot be in it
    page = re.sub(r"^</details>\n", "", page, flags=re.MULTILINE)
    return re.sub(r"\]\(([\w-]+\.md[^)]*)\)", r"](../walk/\1)", page)


def pages() -> dict[str, str]:
    """The names and texts of the pages that link to their notebook."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(WALK.glob("*.md"))}
    return {name: text for name, text in texts.items() if f"(../notebooks/{name}.ipynb)" in text}


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for name, page in pages().items():
        (NOTEBOOKS / f"{name}.ipynb").write_text(notebook(name, page), encoding="utf-8")
        print(NOTEBOOKS / f"{name}.ipynb")
