"""Errors cross from one process to another whole, and say what works."""

import ast
import pickle
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from allyouneed import errors
from allyouneed.apps.convert.exports import FORMATS

MADE = [
    errors.InputError("too long", line=3),
    errors.MissingExtraError("reading x.parquet", "data"),
    errors.Interrupted("stopped after update 7", signal=15),
    *(
        kind("what, and why")
        for kind in vars(errors).values()
        if isinstance(kind, type) and kind not in (errors.InputError, errors.MissingExtraError, errors.Interrupted)
        if issubclass(kind, errors.AllYouNeedError)
    ),
]


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
def test_every_error_survives_pickling(error: errors.AllYouNeedError) -> None:
    error.add_note("in file news.en")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), back.args, vars(back)) == (type(error), str(error), error.args, vars(error))
    assert getattr(back, "msg", None) == getattr(error, "msg", None)


PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


EXTRAS = PROJECT["optional-dependencies"]


def extras_in_messages() -> Iterator[tuple[str, str]]:
    """Yield each library that a message misses, and the extra that it proposes; exports by their formats."""
    for file in Path(errors.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "require_extra":
                library, _, extra = call.args
                if isinstance(library, ast.Constant) and isinstance(extra, ast.Constant):
                    yield str(library.value).partition(".")[0], str(extra.value)
    for name, form in FORMATS.items():
        yield from ((library, name) for library in form.libraries)


def test_a_message_names_the_extra_that_has_the_library_and_little_else() -> None:
    packages = metadata.packages_distributions()
    named: dict[str, set[str]] = {}
    for library, extra in extras_in_messages():
        named.setdefault(extra, set()).update(name.lower() for name in packages[library])
    assert {"polars"} == named["data"]
    assert {"mini-racer"} == named["html"]
    for extra, libraries in named.items():
        listed = {re.split(r"[\[>;=]", line)[0].lower() for line in EXTRAS[extra]}
        assert libraries <= listed
        assert len(listed - libraries) <= 1  # onnx itself, which onnxscript needs


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_named_as_pip_takes_it_with_this_python(extra: str) -> None:
    _, _, command = str(errors.MissingExtraError("this", extra)).partition(": ")
    assert shlex.split(command) == [sys.executable, "-m", "pip", "install", f"allyouneed[{extra}]"]


def test_what_every_command_reads_is_no_extra() -> None:
    """Spreadsheets, and packed text."""
    assert {"python-calamine", "backports.zstd"} <= {re.split("[>;]", line)[0] for line in PROJECT["dependencies"]}
