"""Compile the C files to one library that supports every instruction set. This needs only a compiler.

This is a program of its own, so that the installation can run it before the package exists: `python build.py`.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "libengine.bin"  # on every system, because Python would take a .so for an extension module
MODULE = FOLDER / "engine.wasm"  # the engine for browsers

# Contraction would fuse products with sums, and rounding would depend on the processor.
FLAGS = ["-std=c11", "-O3", "-Wall", "-Wextra", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-g0"]
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mprefer-vector-width=512"]
DOT = ["-march=armv8.2-a+dotprod"]
KERNELS = {
    "x86_64": {"avx2": ["-mavx2"], "avx_vnni": ["-mavx2", "-mavxvnni"], "avx512_vnni": AVX512},
    "aarch64": {"neon": [], "neon_dot": DOT},
    "wasm32": {"wasm": ["-msimd128"]},
}
# By default zig would use every instruction of this processor.
ZIG = [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]
ZIG_FLAGS = {DOT[0]: "-mcpu=generic+dotprod"}  # zig's names for instruction sets
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # other names for machines
PLATFORMS = {  # the wheels of a release, and zig's names for their systems
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
}


class CompilerError(Exception):
    """The compiler failed. The message is the compiler's own."""


def find_compiler() -> list[str] | None:
    """Return the command of a C compiler (`$CC`, cc, or the ziglang wheel's), or None if there is none."""
    named = shlex.split(os.environ.get("CC", ""))
    for command in (named, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    return ZIG if find_spec("ziglang") else None


def build(
    output: Path = LIBRARY,
    *,
    compiler: Sequence[str] = (),
    machine: str = "",
    sources: Sequence[Path] = (),
    flags: Sequence[str] = (),
    link_flags: Sequence[str] = ("-shared",),
) -> list[str]:
    """Compile the library for a machine, by default this one. Returns the instruction sets that the library supports.

    `sources` are compiled in addition to the files of this folder. Instruction sets unknown to the compiler are left
    out. The file is written completely or not at all.
    """
    command = list(compiler or find_compiler() or ["cc"])
    machine = machine or platform.machine().lower()
    machine = MACHINES.get(machine, machine)
    position = [] if machine == "wasm32" or os.name == "nt" else ["-fPIC"]
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as threads:
        objects = Path(temporary)

        def compile_file(source: Path, more: Sequence[str]) -> Path:
            compiled = objects / f"{source.stem}.o"
            if "ziglang" in command:
                more = [ZIG_FLAGS.get(flag, flag) for flag in more]
            _run([*command, *FLAGS, *position, *flags, *more, "-c", str(source), "-o", str(compiled)])
            return compiled

        sets = {
            name: threads.submit(compile_file, FOLDER / f"kernels_{name}.c", more)
            for name, more in KERNELS.get(machine, {}).items()
        }
        known = [name for name, compiled in sets.items() if not isinstance(compiled.exception(), CompilerError)]
        defined = [f"-DHAVE_{name.upper()}" for name in known]
        if machine != "wasm32":  # otherwise the module's bytes would change with every comment
            defined.append(f"-DSOURCES={sources_digest()}")
        others = [
            *sorted(set(FOLDER.glob("*.c")) - set(FOLDER.glob("kernels_*.c"))),
            FOLDER / "kernels_plain.c",
            *sources,
        ]
        files = [
            *threads.map(lambda source: compile_file(source, defined), others),
            *(sets[name].result() for name in known),
        ]
        whole = objects / output.name
        _run([*command, *flags, *link_flags, *map(str, files), "-o", str(whole)])
        partial = output.with_name(f"{output.name}.{os.getpid()}")
        shutil.copyfile(whole, partial)
        partial.replace(output)
    return [*known, "plain"]


def sources_digest() -> str:
    """Return a digest of the C files. Functions of a library with another digest may take other arguments."""
    digest = sha256()
    for file in sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def build_for(platform: str, output: Path, *, flags: Sequence[str] = ()) -> list[str]:
    """Compile the library for a platform's wheel, with zig on any machine. Returns its instruction sets."""
    if platform not in PLATFORMS:
        raise CompilerError(f"WHEEL_PLATFORM is {platform}; expected one of {', '.join(PLATFORMS)}")
    target = PLATFORMS[platform]
    return build(output, compiler=ZIG, machine=target.partition("-")[0], flags=["-target", target, *flags])


def build_module(output: Path = MODULE) -> None:
    """Compile the module for browsers, which imports nothing.

    The same version of zig gives the same bytes everywhere.
    """
    # zig's default stack of 16 MB is memory that a page would never use.
    options = ["--export-dynamic", "--export=malloc", "--export=free", "--strip-all", "-z,stack-size=262144"]
    build(
        output,
        compiler=ZIG,
        machine="wasm32",
        flags=["-target", "wasm32-wasi"],
        link_flags=["-mexec-model=reactor", *(f"-Wl,{option}" for option in options)],
    )


def _run(command: Sequence[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise CompilerError(f"{shlex.join(command)}\n{result.stderr}")


if __name__ == "__main__":
    if sys.argv[1:] == ["wasm"]:
        build_module()
    elif sys.argv[1:] == ["platforms"]:
        print(*PLATFORMS)
    else:
        print(LIBRARY, *build())
