"""SHA256SUMS: a file with the SHA-256 of each file in a folder, one per line, as the program sha256sum writes it."""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NoReturn
from zlib import crc32

from ..errors import BundleError
from .files import read_whole, write_whole

SUMS = "SHA256SUMS"
_LARGEST = 2**16  # bytes
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)\n")


class Checksums:
    """The lines of a folder's SHA256SUMS. Without this file, `present` is False and nothing is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines = _read_lines(folder)
        self.present = self._lines is not None

    def require_lines(self, *names: str) -> None:
        """Refuse a list that lacks one of these files."""
        for name in names:
            if self._lines is not None and name not in {file for _, file in self._lines}:
                raise BundleError(f"{self.folder}/{SUMS} has no line for {name}; copy the folder again")

    def verify(self, name: str) -> None:
        """Refuse a file whose SHA-256 differs from the list. Other threads can run during the computation."""
        if self.present and not self.matches(name):
            self._refuse(name)

    def verify_contents(self, contents: Mapping[str, bytes]) -> None:
        """Refuse the content of a file whose SHA-256 differs from the list. A file without a line is not refused."""
        listed = {name for _, name in self._lines or ()}
        for name, content in contents.items():
            if name in listed and (sha256(content).hexdigest(), name) not in (self._lines or ()):
                self._refuse(name)

    def read(self, name: str) -> bytes:
        """Read a file, and refuse it if its SHA-256 is not the listed one. Returns the bytes that were hashed."""
        content = read_whole(self.folder / name)
        if self.present and (sha256(content).hexdigest(), name) not in (self._lines or ()):
            self._refuse(name)
        return content

    def _refuse(self, name: str) -> NoReturn:
        self.require_lines(name)
        raise BundleError(
            f"{self.folder}/{name} is damaged or was changed: its SHA-256 is not the one in {SUMS}. Copy it again; "
            f"if the change was meant, write its line in {SUMS} again with sha256sum"
        )

    def digest(self, name: str) -> str:
        """Return the SHA-256 that is listed for a file. Without a list, compute it."""
        listed = {file: digest for digest, file in self._lines or ()}
        return listed.get(name) or files_digest(self.folder / name)

    def matches(self, name: str) -> bool:
        """Return True if a file has the SHA-256 that is listed for it."""
        with (self.folder / name).open("rb") as file:
            return (file_digest(file, "sha256").hexdigest(), name) in (self._lines or ())

    def is_current(self) -> bool:
        """Return True if the list on disk is still the one that was read."""
        return self._lines == _read_lines(self.folder)


def code_digest(files: Iterable[Path]) -> str:
    """Compute a digest of the code in Python files. Comments, docstrings and blank lines do not change it."""
    digest = sha256()
    for file in sorted(files):
        code = re.sub(rb'"""(.*?)"""|#[^\n]*', b"", file.read_bytes(), flags=re.DOTALL)
        digest.update(b"\n".join(line.rstrip() for line in code.split(b"\n") if line.strip()))
    return digest.hexdigest()


def files_digest(*paths: Path) -> str:
    """Compute a digest of the contents of files."""
    digest = sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(file_digest(file, "sha256").digest())
    return digest.hexdigest()


def policy_hash(content: str) -> str:
    """Compute the hash with which a Content-Security-Policy allows a style or script inside its page."""
    return "sha256-" + b64encode(sha256(content.encode("utf-8")).digest()).decode("ascii")


def crc32_checksum(path: Path) -> int:
    """Compute the CRC-32 of a file, which reveals damage but not a deliberate change."""
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            checksum = crc32(chunk, checksum)
    return checksum


def write_with_checksums(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files in the order of `contents`, each completely or not at all, and their checksums.

    While files are being replaced, the list has the old and the new checksum of each. So if the writer is killed, the
    files still match the list.
    """
    lines = [(sha256(content).hexdigest(), name) for name, content in contents.items()]
    earlier: list[tuple[str, str]] = []
    with suppress(BundleError):  # a damaged list is replaced
        earlier = _read_lines(folder) or []
    _write_lines(folder, [*lines, *earlier])
    for name, content in contents.items():
        write_whole(folder / name, content)
    _write_lines(folder, lines)


def _write_lines(folder: Path, lines: Iterable[tuple[str, str]]) -> None:
    write_whole(
        folder / SUMS, "".join(f"{digest}  {name}\n" for digest, name in sorted(set(lines), key=lambda x: x[1]))
    )


def _read_lines(folder: Path) -> list[tuple[str, str]] | None:
    try:
        text = read_whole(folder / SUMS, _LARGEST).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BundleError(f"{folder}/{SUMS} cannot be read: {error.strerror or error}") from error
    lines = [(match[1], match[2]) for match in _LINE.finditer(text)]
    if sum(len(digest) + len(name) + 3 for digest, name in lines) != len(text):
        raise BundleError(
            f"{folder}/{SUMS} is damaged: a line of it is not a SHA-256, two spaces and a file; copy the folder again"
        )
    return lines
