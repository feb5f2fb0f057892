"""What `make` installs, and when it says that it has."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from allyouneed.apps.cli.program import LIBRARIES
from conftest import uses_foreign_programs

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a fresh checkout whose environment holds a Python that only notes its arguments."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    set_python(tmp_path, torch_works=True)
    return tmp_path


def set_python(checkout: Path, *, torch_works: bool) -> None:
    python = checkout / ".venv/bin/python"
    torch = "" if torch_works else 'case "$*" in *"import torch"*) exit 1;; esac\n'
    python.write_text(f'#!/bin/sh\necho "$@" >> asked\n{torch}')
    python.chmod(0o755)


def make(checkout: Path, *words: str) -> tuple[int, list[str]]:
    """Run make; return its exit code, and every package it asked pip for."""
    result = subprocess.run(["make", *words], cwd=checkout, capture_output=True, check=False)
    calls = (checkout / "asked").read_text() if (checkout / "asked").exists() else ""
    (checkout / "asked").unlink(missing_ok=True)
    return result.returncode, re.findall(r"pip install .*-c constraints\.txt (.+)$", calls, re.MULTILINE)


def test_what_cannot_be_imported_is_not_installed_and_tried_again(checkout: Path) -> None:
    set_python(checkout, torch_works=False)
    code, _ = make(checkout, ".venv/installed")
    assert code != 0
    assert not (checkout / ".venv/installed").exists()
    set_python(checkout, torch_works=True)
    assert make(checkout, ".venv/installed") == (0, ["pip>=26", "-e ."])
    assert make(checkout, ".venv/installed") == (0, [])


def make_python(path: Path, *, is_new: bool) -> Path:
    """Write a Python that says it is new enough, or not; as `-m venv .venv` it makes a new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"""#!/bin/sh
echo "$@" >> asked
case "$*" in
*version_info*) exit {0 if is_new else 1};;
-V) echo Python 3.{12 if is_new else 10}.1;;
"-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python;;
esac
"""
    )
    path.chmod(0o755)
    return path


def test_a_python_that_is_too_old_is_refused_first_and_its_environment_made_anew(checkout: Path) -> None:
    make_python(checkout / ".venv/bin/python", is_new=False)
    old, new = (make_python(checkout / name, is_new=name == "new") for name in ("old", "new"))
    refused = subprocess.run(
        ["make", "demo", f"PYTHON={old}"], cwd=checkout, capture_output=True, check=False, text=True
    )
    assert refused.returncode != 0
    assert refused.stderr.splitlines()[0] == (
        f"make: Python 3.11 or later is needed; {old} is Python 3.10.1. Try: make demo PYTHON=python3.12"
    )
    assert "pip install" not in (checkout / "asked").read_text()
    assert make(checkout, ".venv/installed", f"PYTHON={new}") == (0, ["pip>=26", "-e ."])
    assert (checkout / ".venv/bin/python").read_text() == new.read_text()


def test_without_a_network_there_is_one_line_and_the_words_of_pip_are_in_a_file(checkout: Path) -> None:
    python = checkout / ".venv/bin/python"
    python.write_text('#!/bin/sh\ncase "$*" in *"pip install"*) echo ERROR: no network >&2; exit 1;; esac\n')
    result = subprocess.run(["make", "demo"], cwd=checkout, capture_output=True, check=False, text=True)
    assert result.stderr.splitlines()[0].startswith("make: pip could not install; without a network it cannot.")
    assert "ERROR" not in result.stderr
    assert (checkout / ".venv/pip.log").read_text() == "ERROR: no network\n"


def test_the_tools_of_the_tests_are_installed_only_for_them(checkout: Path) -> None:
    assert make(checkout, ".venv/installed-dev") == (0, ["pip>=26", "-e .", "-e .[dev]"])
    lines = (ROOT / "Makefile").read_text().splitlines()
    needs = {target: re.findall(rf"^{target}: (\S+)", "\n".join(lines), re.MULTILINE) for target in ("demo", "test")}
    extras = ",".join(LIBRARIES)  # of the commands that the demo proposes
    assert needs == {"demo": [f".venv/installed-{extras}"], "test": [".venv/installed-dev"]}
    assert make(checkout, f".venv/installed-{extras}") == (0, [f"-e .[{extras}]"])


def test_every_library_has_an_exact_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    names = {re.split(r"[\[>;=]", line)[0].lower().replace("_", "-") for line in required} - {"allyouneed"}
    exact = re.findall(r"^(\S+)==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert names <= {name.lower().replace("_", "-") for name in exact}


def test_every_test_is_in_test_all_and_test_leaves_out_those_that_are_slow() -> None:
    text = (ROOT / "Makefile").read_text()
    (every,) = re.findall(r"^PYTEST := (.+)$", text, re.MULTILINE)
    recipes = dict(re.findall(r"^(test[a-z-]*): \S+ ; (.+?)(?:  #.*)?$", text, re.MULTILINE))
    assert recipes["test"] == "$(PYTEST) -m 'not slow'"
    assert recipes["test-all"] == "$(PYTEST)"
    assert not {"-m", "-k", "--ignore", "--deselect"} & set(every.split())


@pytest.mark.parametrize(
    ("lines", "slow"),
    [
        ("import transformers", True),
        ("from serve.browser import open_page", True),
        ("def test():\n    from ctranslate2.converters import MarianConverter", True),
        ("import pytest\npytest.importorskip('onnxruntime')", True),
        ("from allyouneed import export_bundle\nfrom serve.live import running", False),
    ],
)
def test_a_file_that_uses_a_foreign_program_is_slow(lines: str, slow: bool, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(lines)
    assert uses_foreign_programs(tmp_path / "test_it.py") == slow


@pytest.mark.parametrize(("has_browser", "user"), [(True, 0), (False, 0), (False, 1000)])
def test_ci_installs_a_browser_where_root_has_none(tmp_path: Path, has_browser: bool, user: int) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname"):
        (tools / name).symlink_to(shutil.which(name) or "")
    commands = {
        "id": f"echo {user}", "dpkg": f"exit {int(not has_browser)}", "apt-get": 'echo "apt-get $1"',
        "make": 'echo "make CI=$CI $*"',
    }  # fmt: skip
    for name, command in commands.items():
        (tools / name).write_text(f"#!/bin/sh\n{command}\n")
        (tools / name).chmod(0o755)
    result = subprocess.run(
        ["bash", ".ci/run"], cwd=tmp_path, env={"PATH": str(tools)}, capture_output=True, text=True, check=True
    )
    installs = ["apt-get update", "apt-get install"] if not has_browser and user == 0 else []
    first, *others = result.stdout.splitlines()[len(installs) :]
    assert result.stdout.splitlines()[: len(installs)] == installs
    assert set(first.split()[1:]) >= {"CI=true", "check", "coverage"}
    assert others == ["make CI=true test-all"]
