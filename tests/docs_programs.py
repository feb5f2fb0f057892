"""The programs of docs/make/, for tests."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parent.parent / "docs"


def pages_of_the_docs() -> list[Path]:
    """List the pages in docs/, except pages that only the site has."""
    return sorted(page for page in DOCS.rglob("*.md") if page.parent != DOCS / "reference")


def program(name: str) -> ModuleType:
    """Import a program of docs/make/."""
    sys.path.append(str(DOCS / "make"))  # they import each other
    spec = importlib.util.spec_from_file_location(name, DOCS / f"make/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
