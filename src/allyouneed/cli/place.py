"""Making room for a run where another one stands."""

import shutil
from pathlib import Path

from ..errors import OutputError


def clear(folder: Path) -> None:
    """Remove an earlier run. Refuses a folder that holds anything else."""
    if not folder.exists():
        return
    if not (folder / "recipe.toml").is_file():
        raise OutputError(f"{folder} is no run of allyouneed, so --overwrite leaves it alone; name another place")
    shutil.rmtree(folder)
