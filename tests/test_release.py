"""What a release carries: metadata, a short changelog, one version everywhere, and workflows that call what exists."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADDRESS = "https://example.org/me/allyouneed"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import hatch_build.py, as Hatchling does when it builds a wheel; here without Hatchling."""
    plugin = SimpleNamespace(MetadataHookInterface=object, BuildHookInterface=list)
    for part in ("metadata.plugin", "builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, f"hatchling.{part}.interface", plugin)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_metadata(hook: ModuleType) -> dict[str, dict[str, str]]:
    metadata: dict[str, dict[str, str]] = {}
    hook.AddressHook.update(SimpleNamespace(root=str(ROOT)), metadata)
    return metadata


def test_the_readme_of_the_wheel_has_absolute_links_and_the_wheel_addresses(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT_URL", f"{ADDRESS}/")
    metadata = build_metadata(hook)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", metadata["readme"]["text"])
    assert len(links) > 5
    for picture, link in links:
        path = link.removeprefix(f"{ADDRESS}/{'raw' if picture else 'blob'}/HEAD/").partition("#")[0]
        assert (ROOT / path).is_file(), link
        assert path != link
    assert metadata["urls"]["Repository"] == ADDRESS
    assert all(url.startswith(ADDRESS) for url in metadata["urls"].values())


def test_without_an_address_the_readme_is_that_of_the_repository(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROJECT_URL", raising=False)
    metadata = build_metadata(hook)
    assert metadata["readme"]["text"] == (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata["urls"] == {}


def test_the_range_of_torch_has_both_ends_and_the_version_that_is_tested() -> None:
    (bounds,) = [line for line in PROJECT["dependencies"] if line.startswith("torch")]
    low, high = re.fullmatch(r"torch>=([\d.]+),<([\d.]+)", bounds).groups()  # type: ignore[union-attr]
    (tested,) = re.findall(r"^torch==([\d.]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    low, tested, high = ([int(number) for number in version.split(".")] for version in (low, tested, high))
    assert low <= tested < high
    assert f"`{bounds}`" in (ROOT / "docs/releasing.md").read_text(encoding="utf-8")


def test_changelog_and_citation_have_the_version_and_the_changelog_is_short() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = changelog.split("\n## ")[1]
    assert newest.startswith(PROJECT["version"])
    assert len([line for line in newest.splitlines() if line]) <= 20
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == PROJECT["version"]


def test_workflows_call_targets_that_exist_and_no_python_below_the_least() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    least = int(PROJECT["requires-python"].partition("3.")[2])
    called = {"tests": {"check", "test", "test-all"}, "release": {"wheels"}}
    for name, expected in called.items():
        text = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
        assert set(re.findall(r"make ([a-z][a-z0-9-]*)", text)) == expected
        assert expected <= targets
        versions = {int(minor) for minor in re.findall(r'"3\.(\d+)"', text)}
        assert {least, 14} <= versions <= set(range(least, 15))
        if name == "tests":
            assert versions == set(range(least, 15))


def test_the_source_archive_has_what_its_build_reads(hook: ModuleType, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        (tmp_path / name).symlink_to(ROOT / name)
    metadata: dict[str, dict[str, str]] = {}
    hook.AddressHook.update(SimpleNamespace(root=str(tmp_path)), metadata)
    assert metadata["readme"]["text"]
    assert (tmp_path / hook.NATIVE / "build.py").is_file()


class Display:
    """What a build shows."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_info(self, text: str) -> None:
        assert "Compiled" in text

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


def wheel_data(hook: ModuleType, root: Path, native: dict[str, Any], display: Display) -> dict[str, Any]:
    """Return what the hook tells Hatchling of a wheel."""
    build = hook.EngineHook()
    build.root, build.target_name, build.app, build._native = str(root), "wheel", display, lambda: native
    data: dict[str, Any] = {"artifacts": [], "force_include": {}, "dependencies": build.dependencies()}
    build.initialize("standard", data)
    return data


def test_a_wheel_for_another_platform_has_its_engine_and_leaves_that_of_this_machine(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHEEL_PLATFORM", "manylinux_2_17_aarch64")

    def build_for(platform: str, path: Path) -> list[str]:
        path.write_text(platform)
        return ["neon"]

    data = wheel_data(hook, tmp_path, {"build_for": build_for, "find_compiler": lambda: ["cc"]}, Display())
    assert data["tag"] == "py3-none-manylinux_2_17_aarch64"
    assert [name.partition(">")[0] for name in data["dependencies"]] == ["ziglang"]
    ((library, place),) = data["force_include"].items()
    assert (Path(library).read_text(), place) == ("manylinux_2_17_aarch64", "allyouneed/native/libengine.bin")
    assert data["artifacts"] == []


@pytest.mark.parametrize("compiler", [None, ["cc"]])
def test_without_a_compiler_that_works_the_wheel_is_for_any_machine_and_a_warning_says_so(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: list[str] | None
) -> None:
    monkeypatch.delenv("WHEEL_PLATFORM", raising=False)

    def fail(**_: object) -> list[str]:
        raise RuntimeError("no such instruction")

    display = Display()
    native = {"build": fail, "find_compiler": lambda: compiler, "CompilerError": RuntimeError}
    data = wheel_data(hook, tmp_path, native, display)
    assert data.keys() == {"artifacts", "force_include", "dependencies"}
    assert bool(data["dependencies"]) == (compiler is None)
    assert data["artifacts"] == []
    assert len(display.warnings) == (2 if compiler else 1)


def test_a_wheel_of_this_machine_has_its_engine(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WHEEL_PLATFORM", raising=False)
    native = {"build": lambda **_: ["avx2"], "find_compiler": lambda: ["cc"], "CompilerError": RuntimeError}
    data = wheel_data(hook, tmp_path, native, Display())
    assert data["artifacts"] == ["src/allyouneed/native/libengine.bin"]
    assert re.fullmatch(r"py3-none-\w+", data["tag"])
    assert data["tag"] != "py3-none-any"
