"""The engine under AddressSanitizer and UndefinedBehaviorSanitizer: its own tests, and nonsense."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allyouneed.native.build import build

pytestmark = pytest.mark.slow

SANITIZE = [
    "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-O1", "-g",
    "-DLINE=16",  # otherwise up to 48 bytes after a block would go unwatched
]  # fmt: skip
TESTS = Path(__file__).with_name("test_engine.py")
FUZZ = Path(__file__).with_name("fuzz.py")
RUN_TESTS = """
import sys
from pathlib import Path

import pytest

from allyouneed.native import library

library.LIBRARY = Path(sys.argv[1])
sys.exit(pytest.main([sys.argv[2], "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]))
"""


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("sanitized") / "engine.so"
    build(library, flags=SANITIZE)
    return library


def run_sanitized(command: list[object], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in which the sanitizers watch the memory of C."""
    found = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = (
        os.environ
        | {
            "LD_PRELOAD": found.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # Python itself has leaks
        }
        | variables
    )
    result = subprocess.run(
        [sys.executable, *map(str, command)], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    assert "ERROR" not in result.stderr
    return result


def test_a_search_reads_and_writes_only_what_is_its_own(sanitized: Path) -> None:
    run_sanitized(["-c", RUN_TESTS, sanitized, TESTS])


def test_nonsense_is_refused_and_touches_nothing(sanitized: Path) -> None:
    # With small objects of malloc, writing beyond one is seen, too; the other test would take six times as long.
    done, refused = map(int, run_sanitized([FUZZ, sanitized, 60], PYTHONMALLOC="malloc").stdout.split())
    assert done > 20
    assert refused > 20
