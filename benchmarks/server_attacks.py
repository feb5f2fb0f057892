"""What strangers' checkpoints execute, and what connections of strangers cost a server.

    python benchmarks/server_attacks.py runs/en-it

The argument is any bundle. Reads 40 checkpoints that try to make a file: none should. Then a server gets headers,
trailers and requests without an end, and downloads that nobody reads: it should cut the first three, and answer after
each.
"""

import argparse
import json
import pickle
import socket
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Any

from attacks import MIB, PROGRAM, family, memory

from allyouneed.apps.convert.checkpoint_files import read_npz, read_tensor_file
from allyouneed.errors import AllYouNeedError

# What each names, and the arguments with which it would make the file.
CALLS: dict[str, Callable[[str], tuple[Any, ...]]] = {
    "posix system": lambda file: (f"touch {file}",),
    "subprocess Popen": lambda file: (["touch", file],),
    "builtins exec": lambda file: (f"open({file!r}, 'w')",),
    "builtins eval": lambda file: (f"open({file!r}, 'w')",),
    "builtins open": lambda file: (file, "w"),
    "io open": lambda file: (file, "w"),
    "os mkdir": lambda file: (file,),
    "runpy run_path": lambda file: (f"{file}.py",),
    "torch.storage _load_from_bytes": lambda file: (legacy(pickled("posix system", (f"touch {file}",))),),
    "shutil copy": lambda file: (f"{file}.py", file),
}
MOST_SENT, DOWNLOADS = 32 * MIB, 100


def pickled(name: str, arguments: tuple[Any, ...]) -> bytes:
    """Write a pickle that calls a function, by its module and its name."""
    body = pickle.dumps(arguments, protocol=2)[2:-1]
    return b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n" + body + b"R."


def in_archive(content: bytes) -> bytes:
    """Put a pickle into an archive as PyTorch does."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "a")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", content)
            archive.writestr("archive/version", "3\n")
        return path.read_bytes()


def in_array(content: bytes) -> bytes:
    """Put a pickle into the array of objects of an .npz file."""
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    with TemporaryDirectory() as folder:
        path = Path(folder, "a")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("weights.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content)
        return path.read_bytes()


def legacy(content: bytes) -> bytes:
    """Put a pickle behind the magic number of PyTorch's older format."""
    return pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2) + pickle.dumps(1001, protocol=2) + content


WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "model.bin": in_archive, "bare.bin": bytes, "legacy.pt": legacy, "model.npz": in_array,
}  # fmt: skip


def read_checkpoints() -> None:
    """Read every call in every kind of file, and print what came of it."""
    refused = 0
    slowest = 0.0
    made: list[str] = []
    with TemporaryDirectory() as folder:
        proof = Path(folder, "proof")
        Path(f"{proof}.py").write_text(f"open({str(proof)!r}, 'w')")
        for name, (ending, wrap) in product(CALLS, WRAPPERS.items()):
            path = Path(folder, ending)
            path.write_bytes(wrap(pickled(name, CALLS[name](str(proof)))))
            start = time.monotonic()
            try:
                (read_npz if path.suffix == ".npz" else read_tensor_file)(path)
            except AllYouNeedError:
                refused += 1
            slowest = max(slowest, time.monotonic() - start)
            if proof.exists():
                made.append(f"{name} in {ending}")
                proof.rmdir() if proof.is_dir() else proof.unlink()
    count = len(CALLS) * len(WRAPPERS)
    print(f"{count} checkpoints: {refused} refused, executed: {made or 'none'}, at most {slowest:.2f} s each")


@contextmanager
def server(bundle: Path) -> Iterator[tuple[Popen[bytes], int]]:
    """Run a server of a bundle at a free port, which answers when it is handed out."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = Popen(
        [sys.executable, *PROGRAM, "serve", str(bundle), "--port", str(port)], stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        while not is_healthy(port):
            time.sleep(0.2)
        yield process, port
    finally:
        process.terminate()
        process.wait(60)


def is_healthy(port: int) -> bool:
    """Ask the server whether it is there."""
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=20) as answer:
        return bool(answer.status == 200)
    return False


def send_until_cut(port: int, first: bytes, more: bytes) -> int:
    """Send `first`, then `more` again and again without reading; return how many bytes the server took."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection, suppress(OSError):
        connection.sendall(first)
        block = more * (64 * 1024 // len(more) + 1)
        while sent < MOST_SENT:
            sent += connection.send(block)
    return sent


def upload(port: int, pair: tuple[str, str]) -> str:
    """Have a file of 8 MB translated, which stays as it is; return the path of the result."""
    parts = {'name="source"': pair[0], 'name="target"': pair[1]}
    parts['name="file"; filename="a.json"'] = json.dumps(["1845 " * 1_600_000])
    body = "".join(
        f"--boundary\r\nContent-Disposition: form-data; {name}\r\n\r\n{value}\r\n" for name, value in parts.items()
    )
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/translate_file",
        f"{body}--boundary--\r\n".encode(),
        {"Content-Type": "multipart/form-data; boundary=boundary"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return "/" + str(json.load(answer)["translatedFileUrl"]).split("/", 3)[3]


def leave_unread(port: int, path: str) -> list[socket.socket]:
    """Ask for a file many times without reading it."""
    connections = []
    for _ in range(DOWNLOADS):
        one = socket.create_connection(("127.0.0.1", port), timeout=30)
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        connections.append(one)
    return connections


def attack_server(bundle: Path) -> None:
    """Print a row for each attack on a server."""
    host = b"Host: localhost\r\n"
    chunked = b"POST /translate HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n"
    body = b'{"q": "a"}'.ljust(1024)
    piped = (
        b"POST /translate HTTP/1.1\r\n"
        + host
        + b"Content-Type: application/json\r\nContent-Length: 1024\r\n\r\n"
        + body
    )
    attacks = {
        "headers without an end": (b"GET / HTTP/1.1\r\n" + host, b"X-A: " + b"a" * 500 + b"\r\n"),
        "trailers without an end": (chunked, b"X-A: " + b"a" * 500 + b"\r\n"),
        "requests without a reader": (piped, piped),
    }
    with server(bundle) as (process, port):
        for name, (first, more) in attacks.items():
            before = memory(family(process.pid))
            start = time.monotonic()
            sent = send_until_cut(port, first, more)
            seconds, grown = time.monotonic() - start, memory(family(process.pid)) - before
            healthy = is_healthy(port)
            row = f"{name}: cut after {sent / MIB:.1f} MiB and {seconds:.1f} s"
            print(f"{row}, + {grown / MIB:.0f} MiB, healthy: {healthy}")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/languages", timeout=20) as answer:
            source = json.load(answer)[0]
        path = upload(port, (source["code"], source["targets"][0]))
        before = memory(family(process.pid))
        unread = leave_unread(port, path)
        time.sleep(5)
        grown, healthy = memory(family(process.pid)) - before, is_healthy(port)
        print(f"{len(unread)} unread downloads of 8 MB: + {grown / MIB:.0f} MiB, healthy: {healthy}")
        for one in unread:
            one.close()


def main() -> None:
    """Print what each attack comes to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    bundle = parser.parse_args().bundle
    read_checkpoints()
    attack_server(bundle)


if __name__ == "__main__":
    main()
