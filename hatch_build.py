"""Build the wheel: its addresses, which depend on where the repository is, and the compiled engine.

`PROJECT_URL=https://…` names the repository; without it the links of the README stay as they are, and there are no
addresses. `WHEEL_PLATFORM=manylinux_2_17_aarch64`, or another of the `PLATFORMS` in native/build.py, makes the wheel
for that platform; without it, the wheel is for this machine.
"""

import os
import re
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NATIVE = Path("src/allyouneed/native")
LIBRARY = NATIVE / "libengine.bin"


def absolute_links(readme: str, url: str) -> str:
    """Write the README's links to files of the repository, and its pictures, as addresses below `url`."""

    def link(match: re.Match[str]) -> str:
        view = "raw" if match["picture"] else "blob"
        return f"{match['picture']}{match['text']}({url}/{view}/HEAD/{match['target']})"

    return re.sub(r"(?P<picture>!?)(?P<text>\[[^\]]*\])\((?!\w+:|#)(?P<target>[^)]+)\)", link, readme)


class AddressHook(MetadataHookInterface):
    """Sets `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what depends on the repository's address; Hatchling calls it when it reads `pyproject.toml`."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        url = os.environ.get("PROJECT_URL", "").rstrip("/")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(readme, url) if url else readme}
        metadata["urls"] = {
            name: url + path
            for name, path in {
                "Repository": "",
                "Documentation": "/blob/HEAD/docs/index.md",
                "Changelog": "/blob/HEAD/CHANGELOG.md",
                "Issues": "/issues",
            }.items()
            if url
        }


class EngineHook(BuildHookInterface[Any]):
    """Compiles src/allyouneed/native, for an editable installation too; without a compiler `nn/` translates."""

    def dependencies(self) -> list[str]:
        """Ask for a compiler as a wheel, for the build alone, where the machine has none for the platform."""
        if self.target_name != "wheel":
            return []
        has_compiler = not os.environ.get("WHEEL_PLATFORM") and self._native()["find_compiler"]()
        return [] if has_compiler else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the engine, and name the platform in the wheel's tag."""
        if self.target_name != "wheel":
            return
        native = self._native()
        platform = os.environ.get("WHEEL_PLATFORM")
        if platform:  # elsewhere than in the source, where the library for this machine is
            library = Path(self.root, "build", platform, LIBRARY.name)
            library.parent.mkdir(parents=True, exist_ok=True)
            sets = native["build_for"](platform, library)
            build_data["force_include"][str(library)] = str(LIBRARY.relative_to("src"))
        else:
            sets = self._compile_here(native)
            if not sets:
                return
            build_data["artifacts"].append(str(LIBRARY))  # it is not in git
            platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
        self.app.display_info(f"Compiled the engine for {', '.join(sets)}.")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"

    def _compile_here(self, native: dict[str, Any]) -> list[str]:
        """Compile the engine for this machine. Without a compiler that works, warn and return no instruction sets."""
        compiler = native["find_compiler"]()
        try:
            if compiler:
                return list(native["build"](compiler=compiler))
        except native["CompilerError"] as error:
            self.app.display_warning(str(error))
        self.app.display_warning("No C compiler works here: the engine was not compiled, and PyTorch translates.")
        return []

    def _native(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root) / NATIVE / "build.py"))
