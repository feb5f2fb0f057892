"""The commands as a shell runs them."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

EXAMPLES = Path(__file__).parent.parent / "examples"
ENVIRONMENT = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", "PYTHONWARNINGS": "error"}

# Settings of a run on generated dates that takes a second.
TINY_DATES = [
    "data.max_train_samples=200", "data.max_valid_samples=20", "model.d_model=8", "model.d_ff=8", "model.heads=2",
    "model.encoder_layers=1", "model.decoder_layers=1", "train.steps=6", "train.validate_every=3", "train.warmup=2",
    "train.cooldown=0",
]  # fmt: skip


def run(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "allyouneed", *map(str, words)],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        cwd=cwd,
        check=False,
    )


def run_here(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process, which spares it the time to start."""
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


def run_example(name: str, *words: object) -> str:
    """Run an example in a process of its own, and return what it prints."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, words)]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def refusal(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> str:
    """Return the message of a command that must be refused: one line, exit code 2, nothing on standard output."""
    result = run_here(*words, stdin=stdin, cwd=cwd)
    assert result.returncode == 2, result.stderr.decode()
    assert result.stdout == b""
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith("allyouneed: ")
    return line
