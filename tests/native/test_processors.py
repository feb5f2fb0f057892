"""The same bits on processors that this machine has not: ARM by qemu, WebAssembly by V8, and by another compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from allyouneed.native.build import FOLDER, MODULE, PLATFORMS, ZIG, build, build_for, build_module
from recordings import CONFIGS, random_weights, record_search, write_recording
from wheels import require_platform

pytestmark = pytest.mark.slow

REPLAY = Path(__file__).with_name("replay.c")


class Target(NamedTuple):
    """A machine that zig compiles for as for a wheel, and what runs its programs."""

    machine: str
    runner: tuple[str, ...]
    sets: list[str]


GLIBC = Path("/usr/aarch64-linux-gnu")
TARGETS = [
    Target("x86_64", (), ["plain"]),
    Target("aarch64", ("qemu-aarch64", "-L", str(GLIBC)), ["neon-dot", "neon", "plain"]),
]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("recordings")
    paths = []
    for number, config in enumerate(CONFIGS.values()):
        weights = random_weights(config, 2)
        for precision in ("float32", "int8"):
            path = folder / f"{number}-{precision}"
            write_recording(path, config, weights, precision, record_search(config, 4))
            paths.append(path)
    return paths


def replayed(command: list[str], recordings: list[Path]) -> list[list[list[str]]]:
    """Return the name of each instruction set and a hash of all bits, for each recording."""
    outputs = [subprocess.run([*command, path], capture_output=True, text=True, check=True) for path in recordings]
    return [[line.split() for line in output.stdout.splitlines()] for output in outputs]


@pytest.fixture(scope="module")
def expected(recordings: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    program = tmp_path_factory.mktemp("here") / "replay"
    build(program, sources=[REPLAY], flags=[f"-I{FOLDER}"], link_flags=[])
    program.chmod(0o755)
    return [lines[-1][1] for lines in replayed([str(program)], recordings)]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.machine)
def test_another_processor_and_compiler_give_the_same_bits(
    target: Target, recordings: list[Path], expected: list[str], tmp_path: Path
) -> None:
    if target.runner and not (shutil.which(target.runner[0]) and GLIBC.exists()):
        needed = "needs qemu-aarch64 and a C library for it: apt-get install qemu-user libc6-arm64-cross"
        assert "CI" not in os.environ, needed
        pytest.skip(needed)
    program = tmp_path / "replay"
    flags = ["-target", PLATFORMS[f"manylinux_2_17_{target.machine}"], f"-I{FOLDER}"]
    build(program, compiler=ZIG, machine=target.machine, sources=[REPLAY], flags=flags, link_flags=[])
    program.chmod(0o755)
    for lines, bits in zip(replayed([*target.runner, str(program)], recordings), expected, strict=True):
        assert {found for _, found in lines} == {bits}
        assert [name for name, _ in lines][-len(target.sets) :] == target.sets


def test_the_module_for_browsers_is_that_of_the_sources(tmp_path: Path) -> None:
    build_module(tmp_path / "engine.wasm")
    same = (tmp_path / "engine.wasm").read_bytes() == MODULE.read_bytes()
    assert same, "run: python src/allyouneed/native/build.py wasm (with the ziglang of constraints.txt)"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_library_of_a_wheel_runs_where_its_name_says(platform: str, tmp_path: Path) -> None:
    library = tmp_path / "libengine.bin"
    build_for(platform, library, flags=["-O1"])  # the same libraries and symbols, sooner
    require_platform(platform, library.read_bytes())
    older = platform.replace("_2_17_", "_2_1_").replace("_11_0_", "_10_9_")
    for other in {older, *PLATFORMS} - {platform}:
        with pytest.raises(AssertionError):
            require_platform(other, library.read_bytes())


def test_a_library_has_no_instruction_that_only_this_machine_has() -> None:
    macros = subprocess.run(
        [*ZIG, "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True, check=True
    ).stdout
    assert "__LP64__" in macros
    assert "__AVX" not in macros
