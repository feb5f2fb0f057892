"""What of the wheel's metadata depends on where the repository is: its addresses, and the links of the README.

`PROJECT_URL=https://…` names the repository; without it the links stay as they are, and there are no addresses.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def absolute_links(readme: str, url: str) -> str:
    """The README with its links to files of the repository, and its pictures, as addresses below `url`."""

    def link(match: re.Match[str]) -> str:
        view = "raw" if match["picture"] else "blob"
        return f"{match['picture']}{match['text']}({url}/{view}/HEAD/{match['target']})"

    return re.sub(r"(?P<picture>!?)(?P<text>\[[^\]]*\])\((?!\w+:|#)(?P<target>[^)]+)\)", link, readme)


class AddressHook(MetadataHookInterface):
    """Sets `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by Hatchling when it reads `pyproject.toml`."""
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
