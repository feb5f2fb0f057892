"""The words of the code: names the glossary rules out, and each public name defined in one module only."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import allyouneed

HOUSE = Path(allyouneed.__file__).parent
FILES = sorted(HOUSE.rglob("*.py"))
ROOT = Path(__file__).parents[1]
OTHER_FILES = [
    file for folder in ("tests", "benchmarks", "examples", "docs/make") for file in (ROOT / folder).rglob("*.py")
]
AVOID = {
    "anew", "asked", "chance", "each", "found", "given", "own", "place", "said", "shown", "theirs", "told", "wanted",
}  # fmt: skip


def names_to_avoid(tree: ast.AST) -> Iterator[str]:
    """Variables, parameters, attributes and functions with a name of `AVOID`, and functions that end in "of"."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                if name.strip("_") in AVOID:
                    yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.strip("_") in AVOID or name == "of" or name.endswith("_of"):
                    yield name


def public_names(tree: ast.Module) -> Iterator[str]:
    """The public functions, classes and constants that a module defines."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        # Each file of an API calls its routes `router`, as FastAPI's users expect.
        yield from (name for name in names if not name.startswith("_") and name != "router")


def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_no_name_is_one_that_the_glossary_rules_out() -> None:
    wrong = [f"{file}: {name}" for file in [*FILES, *OTHER_FILES] for name in names_to_avoid(parse(file))]
    assert len(OTHER_FILES) > 50
    assert wrong == []


@pytest.mark.parametrize(
    "code", ["place = 1", "self.own = 1", "def f(chance): ...", "def rules_of(x): ...", "def _said(): ..."]
)
def test_a_name_that_is_ruled_out_is_seen(code: str) -> None:
    assert len(list(names_to_avoid(ast.parse(code)))) == 1


def test_a_public_name_is_defined_in_one_module() -> None:
    modules = defaultdict(set)
    for file in FILES:
        if file.name != "__init__.py":
            for name in public_names(parse(file)):
                modules[name].add(str(file.relative_to(HOUSE)))
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}
