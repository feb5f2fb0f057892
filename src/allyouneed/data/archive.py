"""Zip archives of office programs, read in memory with limits on their unpacked size."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from copy import copy
from struct import error as StructError
from typing import IO

from ..errors import DocumentError
from .safe_xml import Element, parse_xml

MAX_PARTS = 10_000
MAX_SIZE = 512 << 20  # bytes; the sum over all parts, unpacked
MAX_RATIO = 200  # unpacked bytes per packed byte; text and markup have 10 to 30
ALWAYS_ALLOWED = 2 << 20  # unpacked bytes that are allowed at any ratio
# Office files use these two; other methods cannot be unpacked piece by piece.
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

_BROKEN = (
    zipfile.BadZipFile, zlib.error, StructError, EOFError, OSError, ValueError, NotImplementedError, RuntimeError,
)  # fmt: skip


class Archive:
    """A zip archive in memory. Refuses anything else, and an archive that is too large to unpack, as a `DocumentError`.

    Sizes are taken from the archive itself; no part is unpacked beyond the size that it states.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _BROKEN as error:
            raise DocumentError(f"is not a zip archive, as its format requires: {error}") from error
        self._infos = self._zip.infolist()
        names = [info.filename for info in self._infos]
        size = sum(info.file_size for info in self._infos)
        if len(names) > MAX_PARTS:
            raise DocumentError(f"has {len(names):,} parts; at most {MAX_PARTS:,} are read")
        if size > MAX_SIZE or size > max(ALWAYS_ALLOWED, MAX_RATIO * len(data)):
            raise DocumentError(f"would be {size >> 20:,} MiB unpacked, which is too much for {len(data):,} bytes")
        if len(set(names)) < len(names):
            raise DocumentError("has two parts of the same name")
        if not {info.compress_type for info in self._infos} <= METHODS:
            raise DocumentError(
                "is compressed in a way that office programs cannot read; save it again with such a program"
            )
        self.names = frozenset(names)

    def read(self, name: str) -> bytes:
        """Unpack a part. Refuses a part that is missing, damaged or encrypted."""
        if name not in self.names:
            raise DocumentError(f"has no part {name}, which a file of its format has")
        try:
            with self._zip.open(name) as part:
                # Without a limit, the whole part would be unpacked before its size is compared.
                return part.read(self._zip.getinfo(name).file_size + 1)
        except _BROKEN as error:
            raise DocumentError(f"is damaged: {name}: {error}") from error

    def open(self, name: str) -> IO[bytes]:
        """Open a part as a stream, which is cut off at the size that the archive states."""
        return self._zip.open(name)

    def read_xml(self, name: str) -> Element:
        """Parse a part as XML and return its root."""
        return parse_xml(self.read(name), part=name)

    def replaced(self, parts: Mapping[str, bytes]) -> bytes:
        """Return the archive with new contents for some parts. The other parts, their order and their times stay."""
        if not parts:
            return self._data
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w") as written:
            for info in self._infos:
                content = parts[info.filename] if info.filename in parts else self.read(info.filename)
                written.writestr(copy(info), content, compress_type=info.compress_type)
        return output.getvalue()
