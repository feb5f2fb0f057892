"""The health check of a container: see whether a server of this user answers, whatever its address and port.

The system lists which sockets accept connections, and whose they are. So this need not know the server's settings.
"""

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple

SOCKET_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"  # the state of a socket that accepts connections
_SECONDS = 2.0


class Address(NamedTuple):
    """Where a server can be reached on this machine."""

    host: str
    port: int


def listening_addresses(table: str, user: int) -> Iterator[Address]:
    """Yield the addresses at which a user's sockets accept connections, from a table of /proc/net.

    A socket that accepts connections at every address is reached at the loopback address.
    """
    for row in table.strip().split("\n")[1:]:
        _, local, _, state, _, _, _, owner, *_ = row.split()
        if state == _LISTENING and int(owner) == user:
            number, _, port = local.partition(":")
            yield Address(_host(bytes.fromhex(number)), int(port, 16))


def _host(number: bytes) -> str:
    """Convert an address from the kernel's form, words of four bytes in the processor's byte order."""
    words = [number[i : i + 4] for i in range(0, len(number), 4)]
    ordered = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    if not any(ordered):
        return "127.0.0.1" if len(ordered) == 4 else "::1"
    return socket.inet_ntop(socket.AF_INET if len(ordered) == 4 else socket.AF_INET6, ordered)


def answers(address: Address) -> bool:
    """Return True if a server reports at an address that it is alive."""
    connection = HTTPConnection(address.host, address.port, timeout=_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def exit_code(tables: Sequence[Path] = SOCKET_TABLES) -> int:
    """Return 0 if some server of this user answers, otherwise 1."""
    addresses = (
        address for table in tables if table.exists()
        for address in listening_addresses(table.read_text(encoding="ascii"), os.getuid())
    )  # fmt: skip
    return 0 if any(map(answers, addresses)) else 1


if __name__ == "__main__":
    sys.exit(exit_code())
