"""How tests wait: for an event, and on a busy machine as long as it takes."""

import subprocess
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess

PATIENCE = 600.0  # seconds: only what hangs takes longer


Process = subprocess.Popen[str] | subprocess.Popen[bytes] | BaseProcess


def wait_until(happened: Callable[[], object], process: Process | None = None) -> None:
    """Return when `happened` is true; fail if `process`, which would make it true, has ended before."""
    end = time.monotonic() + PATIENCE
    while not happened():
        code = process.poll() if isinstance(process, subprocess.Popen) else process and process.exitcode
        assert code is None, f"the process has ended with {code}"
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.005)
