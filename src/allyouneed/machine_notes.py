"""Notes in the user's cache of what was found out once on this machine.

The name of a note is a hash of everything that it depends on: what the caller names, the files of the rooms below, the
versions of the libraries that compute, and the processor. So after an edit of a file of Figure 1 nothing is known.
"""

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import OutputError
from .files import parse_json, to_json, write_whole
from .interpreter import installed

ROOMS = ("nn", "younger", "fast", "light", "decode", "config")
VARIABLES = ("ATEN_CPU_CAPABILITY", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")  # hold libraries to fewer instructions


def read_note(kind: str, *key: object) -> dict[str, Any]:
    """What was noted; empty without a note that can be read."""
    try:
        noted = parse_json(note_path(kind, *key).read_bytes())
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def write_note(content: dict[str, Any], kind: str, *key: object) -> None:
    """Note something; where there is no folder for it, the next process finds it out again."""
    path = note_path(kind, *key)
    with suppress(OSError, OutputError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_json(content))


def note_path(kind: str, *key: object) -> Path:
    """The file of a note, in `$XDG_CACHE_HOME/allyouneed` or `~/.cache/allyouneed`."""
    digest = hashlib.sha256()
    house = Path(__file__).parent
    for file in sorted(file for room in ROOMS for file in (house / room).glob("*.py")):
        digest.update(file.read_bytes())
    libraries = [installed(name) for name in ("numpy", "torch", "numba")]
    digest.update(repr((key, libraries, _processor())).encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "allyouneed" / f"{kind}-{digest.hexdigest()[:32]}.json"


def _processor() -> tuple[str, ...]:
    """What decides which instructions libraries choose, and so how many levels inputs in int8 have."""
    flags: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].split("\n")
        flags = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return platform.machine(), platform.processor(), *(os.environ.get(name, "") for name in VARIABLES), *flags
