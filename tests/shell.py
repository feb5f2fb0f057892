"""The commands as a shell runs them."""

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", "PYTHONWARNINGS": "error"}


def run(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "allyouneed", *map(str, words)],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        cwd=cwd,
        check=False,
    )


def refusal(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> str:
    """What a command that must be refused says: one line, exit code 2, nothing on standard output."""
    result = run(*words, stdin=stdin, cwd=cwd)
    assert result.returncode == 2, result.stderr.decode()
    assert result.stdout == b""
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith("allyouneed: ")
    return line
