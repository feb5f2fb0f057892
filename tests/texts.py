"""What the program and its docs say: pages, docstrings, messages and help, with the commands that there are."""

import ast
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

import typer

import allyouneed
from allyouneed.apps.cli import app
from docs_programs import pages_of_the_docs

HOUSE = Path(allyouneed.__file__).parent
ROOT = Path(__file__).parent.parent
GROUP: Any = typer.main.get_command(app)


def command_of(name: str) -> Any:
    command = GROUP
    for word in name.split():
        command = command.commands[word]
    return command


def options_of(command: Any) -> set[str]:
    return {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}


def strings_in(tree: ast.AST, skipped: Set[int] = frozenset()) -> Iterator[str]:
    """Yield the strings of a program, with X for inserted values; without nodes whose `id` is in `skipped`."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    left_out = inner | skipped
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


@cache
def texts() -> list[tuple[str, str]]:
    """List every text with the name of its file."""
    found = list[tuple[str, str]]()
    for file in HOUSE.rglob("*.py"):
        name = str(file.relative_to(HOUSE))
        found += [(name, text) for text in strings_in(ast.parse(file.read_text(encoding="utf-8")))]
    for file in (*HOUSE.rglob("*.toml"), *HOUSE.rglob("*.js"), *HOUSE.rglob("*.html")):
        found.append((str(file.relative_to(HOUSE)), file.read_text(encoding="utf-8")))
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages_of_the_docs()):
        found.append((page.name, page.read_text(encoding="utf-8").replace("\\\n", " ")))
    return found
