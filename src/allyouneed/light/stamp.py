"""A note in the user's cache that the numbers of `LightEngine` were compared with those of `nn/`, on this machine.

Its name is a hash of everything that they depend on: the files of the rooms below, the weights and sizes of the model,
the versions of NumPy and PyTorch, and the processor. So an edit of a file of Figure 1 needs another comparison.
"""

import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from ..config import ModelConfig
from ..files import write_whole

ROOMS = ("nn", "younger", "fast", "light", "decode", "config")


def read_stamp(config: ModelConfig, weights_digest: str) -> dict[str, int | None] | None:
    """What was noted: the "greatest" level of inputs, None in float32. Without a note, None."""
    try:
        noted = json.loads(stamp_path(config, weights_digest).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return noted if isinstance(noted, dict) and "greatest" in noted else None


def write_stamp(config: ModelConfig, weights_digest: str, greatest: int | None) -> None:
    """Note that the numbers are the same; where there is no folder for it, the next process compares again."""
    path = stamp_path(config, weights_digest)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"greatest": greatest}))


def stamp_path(config: ModelConfig, weights_digest: str) -> Path:
    """The file of the note."""
    digest = hashlib.sha256()
    house = Path(__file__).parent.parent
    for file in sorted(file for room in ROOMS for file in (house / room).glob("*.py")):
        digest.update(file.read_bytes())
    libraries = [version(name) for name in ("numpy", "torch")]
    digest.update(repr((asdict(config), weights_digest, libraries, _processor())).encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "allyouneed" / f"compared-{digest.hexdigest()[:32]}.json"


def _processor() -> tuple[str, ...]:
    """What decides which instructions PyTorch chooses, and so how many levels inputs in int8 have."""
    flags: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].split("\n")
        flags = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return platform.machine(), platform.processor(), os.environ.get("ATEN_CPU_CAPABILITY", ""), *flags
