"""Whether the engine in each wheel runs where the wheel's name says: python tests/wheels.py dist/*.whl"""

import re
import struct
import sys
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

Version = tuple[int, ...]

ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
MACH_O_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
MACH_O, NEEDED, CODE_SIGNATURE, OLDEST_SYSTEM = 0xFEEDFACF, 0xC, 0x1D, 0x32
ALLOWED = {"libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1", "/usr/lib/libSystem.B.dylib"}  # on every system


class Library(NamedTuple):
    """What a shared library is for: the system by its name in a tag, the machine, and the oldest version that works."""

    system: str
    machine: str
    oldest: Version
    needed: set[str]
    signed: bool = True


def read_library(content: bytes) -> Library:
    """Read the headers of a library of Linux or macOS."""
    if content[:5] == b"\x7fELF\x02":
        versions = re.findall(rb"\bGLIBC_(\d+)\.(\d+)", content)
        needed = {name.decode() for name in re.findall(rb"\0((?:lib|ld-)[\w+-]+\.so\.\d+)", content)}
        machine = ELF_MACHINES[struct.unpack_from("<H", content, 18)[0]]
        return Library("manylinux", machine, max(tuple(map(int, version)) for version in versions), needed)
    magic, machine_number = struct.unpack_from("<II", content)
    assert magic == MACH_O, "neither ELF nor Mach-O"
    commands = _commands(content)
    (oldest,) = struct.unpack_from("<I", commands[OLDEST_SYSTEM][0], 4)
    names = {command[16:].split(b"\0")[0].decode() for command in commands[NEEDED]}
    return Library(
        "macosx", MACH_O_MACHINES[machine_number], (oldest >> 16, oldest >> 8 & 255), names, CODE_SIGNATURE in commands
    )


def _commands(content: bytes) -> dict[int, list[bytes]]:
    """Return the load commands of a Mach-O file by kind, without their first eight bytes."""
    (count,) = struct.unpack_from("<I", content, 16)
    found: dict[int, list[bytes]] = {}
    place = 32
    for _ in range(count):
        kind, size = struct.unpack_from("<II", content, place)
        found.setdefault(kind & 0x7FFFFFFF, []).append(content[place + 8 : place + size])
        place += size
    return found


def require_platform(platform: str, content: bytes) -> str:
    """Refuse a library that does not run on every machine of a platform tag. Returns what it is in words."""
    system, major, minor, machine = re.fullmatch(r"([a-z]+)_(\d+)_(\d+)_(\w+)", platform).groups()  # type: ignore[union-attr]
    library = read_library(content)
    assert (library.system, library.machine) == (system, machine), library
    assert library.oldest <= (int(major), int(minor)), library
    assert library.needed <= ALLOWED, library
    assert library.signed or machine != "arm64", "Apple's processors run only what is signed"
    return f"{library.system} {'.'.join(map(str, library.oldest))} or later on {library.machine}"


def check_wheel(path: Path) -> str:
    """Refuse a wheel whose engine is missing or for another platform, or which asks for one version of Python."""
    python, abi, platform = path.stem.split("-")[-3:]
    assert (python, abi) == ("py3", "none"), path.name
    with ZipFile(path) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith("/libengine.bin")]
        return require_platform(platform, wheel.read(name))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(argument, "has an engine for", check_wheel(Path(argument)))
