"""The engine under AddressSanitizer and UndefinedBehaviorSanitizer: random models, searches and nonsense."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allyouneed.native.build import FOLDER, build, find_compiler
from recordings import CONFIGS, random_weights, record_search, write_recording

pytestmark = pytest.mark.slow

SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-O1", "-g"]
REPLAY = Path(__file__).with_name("replay.c")
FUZZ = Path(__file__).with_name("fuzz.py")


def asan_library() -> str:
    found = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("sanitized") / "replay"
    build(program, sources=[REPLAY], flags=[*SANITIZE, f"-I{FOLDER}"], link_flags=[])
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("name", CONFIGS)
def test_a_search_reads_and_writes_only_what_is_its_own(
    name: str, precision: str, replay: Path, tmp_path: Path
) -> None:
    config = CONFIGS[name]
    recording = tmp_path / "search"
    search = record_search(config, 4, longest=70, steps=12)
    write_recording(recording, config, random_weights(config, 2), precision, search)  # type: ignore[arg-type]
    result = subprocess.run([replay, recording], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert len({bits for _, bits in lines}) == 1
    assert lines[-1][0] == "plain"


def test_nonsense_is_refused_and_touches_nothing(tmp_path: Path) -> None:
    assert find_compiler()
    library = tmp_path / "engine.so"
    build(library, flags=SANITIZE)
    options = "detect_leaks=0:allocator_may_return_null=1"  # Python itself has leaks
    environment = os.environ | {"LD_PRELOAD": asan_library(), "ASAN_OPTIONS": options, "PYTHONMALLOC": "malloc"}
    result = subprocess.run(
        [sys.executable, FUZZ, library, "60"], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "ERROR" not in result.stderr
    done, refused = map(int, result.stdout.split())
    assert done > 20
    assert refused > 20
