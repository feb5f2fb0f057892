"""The commands as a shell runs them."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", "PYTHONWARNINGS": "error"}


def run(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "allyouneed", *map(str, words)],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        cwd=cwd,
        check=False,
    )


def run_here(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """The same in this process, which spares it the time to start."""
    from allyouneed.apps.cli import main

    read, written, errors = (io.TextIOWrapper(io.BytesIO(content), "utf-8") for content in (stdin, b"", b""))
    code = 0
    with (
        mock.patch.multiple(sys, argv=["allyouneed", *map(str, words)], stdin=read, stdout=written, stderr=errors),
        mock.patch.dict(os.environ, ENVIRONMENT),
        contextlib.chdir(cwd or Path.cwd()),
    ):
        try:
            main()
        except SystemExit as left:
            code = int(left.code or 0)
        finally:
            written.flush()
            errors.flush()
    out, err = (stream.buffer.getvalue() for stream in (written, errors))
    return subprocess.CompletedProcess([*map(str, words)], code, out, err)


def refusal(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> str:
    """What a command that must be refused says: one line, exit code 2, nothing on standard output."""
    result = run_here(*words, stdin=stdin, cwd=cwd)
    assert result.returncode == 2, result.stderr.decode()
    assert result.stdout == b""
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith("allyouneed: ")
    return line
