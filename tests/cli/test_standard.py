"""Standard streams as a shell may leave them: closed, full, a pipe that nobody reads, a pipe with a name."""

import io
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from allyouneed.apps import cli
from allyouneed.apps.cli.standard import set_encodings
from allyouneed.errors import SlowerEngineWarning
from shell import ENVIRONMENT, run_here
from waiting import PATIENCE

# One process imports everything, and a fork of it, with real descriptors, runs each command.
FORKS = """
import gc, json, os, sys, torch
torch.set_num_threads(1)
import allyouneed.translator, allyouneed.apps.explain, allyouneed.apps.cli
gc.freeze()  # a fork then copies no page only to collect garbage
cases = json.load(sys.stdin)
for case in cases:
    if pid := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        continue
    sys.argv = ["allyouneed", *case["words"]]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        where = case[name]
        os.close(number)
        if where == "closed":
            setattr(sys, name, None)
            continue
        if where == "unread":
            reader, descriptor = os.pipe()
            os.close(reader)
        else:
            descriptor = os.open(where, os.O_RDWR if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))
    del case, cases
    allyouneed.apps.cli.main()
"""


class Case(NamedTuple):
    words: str
    code: int
    says: str = ""
    stdin: str = "/dev/null"
    stdout: str = "out"
    stderr: str = "err"


CASES = [
    Case("translate bundle", 2, "standard input could not be read: Bad file descriptor", stdin="closed"),
    Case("translate bundle in", 0, stdin="closed"),
    Case("translate bundle in", 2, "standard input or output is closed", stdout="closed"),
    Case("translate bundle in --output whole --overwrite", 0, stdout="closed"),
    Case("translate bundle in", 0, stderr="closed"),
    Case("translate bundle nothing", 2, stderr="closed"),
    Case("translate bundle in", 141, stdout="unread"),
    Case("translate bundle in", 2, "the disk is full", stdout="/dev/full"),
    Case("translate bundle in --output /dev/null", 0),
    Case("translate bundle in --output /dev/full", 2, "the disk is full: /dev/full could not be written"),
    Case("translate bundle in --output /proc/nowhere", 2, "/proc/nowhere.partial could not be written"),
    Case("translate bundle bundle", 2, "bundle could not be read: Is a directory"),
    Case("translate bundle /dev/zero", 2, "/dev/zero, line 1 is longer than 1,048,576 bytes"),
    Case("score bundle --source in --target in", 141, stdout="unread"),
    Case("score bundle --source in --target in", 2, "the disk is full", stdout="/dev/full"),
    Case("score bundle --source in --target in", 2, "standard input or output is closed", stdout="closed"),
    Case("evaluate bundle --source many --target many", 141, stdout="unread"),
    Case("evaluate bundle --source many --target many", 2, "the disk is full", stdout="/dev/full"),
    Case("explain bundle abc --output /dev/full", 2, "the disk is full: /dev/full could not be written"),
    Case("explain bundle abc --output bundle", 2, "bundle is a folder; name a file"),
    Case("explain bundle abc --format json --output /dev/null", 141, stderr="unread"),
    Case("explain bundle abc --format svg --output /proc/nowhere", 2, "/proc/nowhere: No such file or directory"),
    Case("config base", 141, stdout="unread"),
    Case("config base", 2, "the disk is full", stdout="/dev/full"),
    Case("config base", 2, "standard input or output is closed", stdout="closed"),
    Case("paper --help", 141, stdout="unread"),
    Case("keys", 141, stdout="unread"),
    Case("--help", 2, "the disk is full", stdout="/dev/full"),
    Case(
        "train dates data.max_train_samples=20 data.max_valid_samples=2 train.steps=1 --output run",
        141,
        stderr="unread",
    ),
]


def test_what_goes_to_a_pipe_is_utf_8_whatever_the_locale() -> None:
    expected = run_here("config", "base").stdout
    printed = subprocess.run(
        [sys.executable, "-m", "allyouneed", "config", "base"], capture_output=True, check=True,
        env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"},
    ).stdout  # fmt: skip
    assert printed == expected
    assert not expected.isascii()


def test_a_terminal_gets_what_it_cannot_show_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), "cp1252")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    set_encodings()
    terminal.write("§ ≥")
    terminal.flush()
    assert terminal.buffer.getvalue() == b"\xa7 \\u2265"


def test_windows_is_refused_at_the_import() -> None:
    code = "import sys; sys.platform = 'win32'; import allyouneed.apps.cli"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.match("ImportError: .*Linux .*macOS; .*WSL", done.stderr.splitlines()[-1])


@pytest.mark.slow
def test_whatever_the_streams_are_there_is_an_exit_code_and_at_most_one_line(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("abc\n\nde\n")
    (tmp_path / "many").write_text("abc\n" * 30)  # of fewer pairs the intervals are said to be too narrow
    assert saved == tmp_path / "bundle"
    cases = [
        case._asdict() | {"words": case.words.split(), "stderr": f"err{i}" if case.stderr == "err" else case.stderr}
        for i, case in enumerate(CASES)
    ]
    forks = subprocess.run(
        [sys.executable, "-c", FORKS], input=json.dumps(cases).encode(), stdout=subprocess.PIPE,
        cwd=tmp_path, env=ENVIRONMENT, timeout=PATIENCE, check=True,
    )  # fmt: skip
    codes = [int(code) for code in forks.stdout.split()]
    for i, (case, code) in enumerate(zip(CASES, codes, strict=True)):
        message = (tmp_path / f"err{i}").read_text() if case.stderr == "err" else ""
        assert code == case.code, (case, message)
        assert case.says in message, case
        assert "Traceback" not in message, case
        if code:
            assert len(message.splitlines()) == (case.code == 2 and case.stderr == "err"), (case, message)


def test_a_warning_is_shown_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Python forgets what it has shown whenever something leaves `catch_warnings`."""
    monkeypatch.setattr(warnings, "showwarning", cli._show_warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for _ in range(3):
            warnings.warn("a test of one line", SlowerEngineWarning, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == ["allyouneed: a test of one line"]
