"""Errors cross from one process to another whole, and say what works."""

import pickle
import shlex
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from allyouneed import errors

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


def test_there_are_few_extras() -> None:
    assert set(PROJECT["optional-dependencies"]) == {"serve", "fast", "data", "export", "import", "ray", "dev"}


@pytest.mark.parametrize("extra", ["data", "export", "fast", "import"])
def test_what_is_missing_is_named_as_pip_takes_it_with_this_python(extra: str) -> None:
    """`allyouneed[extra]` would be looked for on an index, where a checkout does not stand."""
    _, _, command = str(errors.MissingExtraError("this", extra)).partition(": ")
    python, *rest = shlex.split(command)
    assert (python, rest[:3]) == (sys.executable, ["-m", "pip", "install"])

    def plain(requirement: str) -> str:
        return "".join(char for char in requirement.lower() if char not in " '\"()._-")

    assert sorted(map(plain, rest[3:])) == sorted(map(plain, PROJECT["optional-dependencies"][extra]))


def test_without_the_packages_metadata_the_extra_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: str) -> list[str]:
        raise metadata.PackageNotFoundError("allyouneed")

    monkeypatch.setattr(metadata, "requires", none)
    assert str(errors.MissingExtraError("this", "data")).endswith("-m pip install 'allyouneed[data]'")
