"""The clients of serve.py.

python benchmarks/serve_load.py PORT LINES CLIENTS SECONDS [EXPECTED]

Each client sends a line and waits for its translation, over and over, on a connection of its own. With EXPECTED, a
file of the right translations, some clients misbehave and all answers are checked. Prints a report as JSON.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

PATIENCE = 90.0  # seconds; longer than the server takes for any request
HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "


class Connection:
    """A kept HTTP connection: as little work for the client as possible."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, body: bytes, length: int | None = None) -> asyncio.StreamReader:
        """Send a request; `length` is what it claims as its length."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(HEAD + str(length or len(body)).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        return reader

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Send a body; return the status and the body of the answer."""
        reader = await self.send(body)
        head = await reader.readuntil(b"\r\n\r\n")
        lowered = head.lower()
        length = int(lowered.split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        if b"connection: close" in lowered:
            self.close()
        return int(head.split(b" ", 2)[1]), answer

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def body(*texts: str) -> bytes:
    return json.dumps({"texts": texts, "source": "en", "target": "de"}).encode()


async def client(port: int, lines: list[str], first: int, deadline: float, latencies: list[float]) -> int:
    """Send lines until the deadline. Returns the number of answers other than 200."""
    connection, failed, number = Connection(port), 0, first
    while time.perf_counter() < deadline:
        begin = time.perf_counter()
        status, _ = await connection.post(body(lines[number % len(lines)]))
        if status == 200:
            latencies.append(time.perf_counter() - begin)
        else:
            failed += 1
            await asyncio.sleep(0.05)
        number += 1
    connection.close()
    return failed


async def unruly_client(
    port: int, lines: list[str], expected: list[str], seed: int, deadline: float, outcomes: Counter[str]
) -> None:
    """Send right requests, and now and then a wrong one, or leave before the answer."""
    rng, connection = random.Random(seed), Connection(port)
    while time.perf_counter() < deadline:
        numbers = [rng.randrange(len(lines)) for _ in range(rng.choice((1, 1, 1, 4)))]
        mischief = rng.random()
        try:
            async with asyncio.timeout(PATIENCE):
                if mischief < 0.03:  # leaves before the answer
                    await connection.send(body(*(lines[number] for number in numbers)))
                    await asyncio.sleep(rng.random() * 0.05)
                    connection.close()
                    outcomes["left"] += 1
                elif mischief < 0.05:  # leaves in the middle of the request
                    await connection.send(body("abc")[:20], length=500)
                    connection.close()
                    outcomes["left"] += 1
                elif mischief < 0.07:
                    status, _ = await connection.post(rng.choice((b"{", b"[]", b'{"texts": 3}', b"\xff", body()[:-9])))
                    outcomes["malformed: refused" if 400 <= status < 500 else f"malformed: {status}"] += 1
                elif mischief < 0.09:
                    status, _ = await connection.post(body("a" * 3_000_000))
                    outcomes["oversized: refused" if 400 <= status < 500 else f"oversized: {status}"] += 1
                else:
                    status, answer = await connection.post(body(*(lines[number] for number in numbers)))
                    if status != 200:
                        outcomes[f"status {status}"] += 1
                        continue
                    texts = [one["text"] for one in json.loads(answer)["translations"]]
                    outcomes["right" if texts == [expected[number] for number in numbers] else "WRONG"] += 1
        except TimeoutError:
            connection.close()
            outcomes["NO ANSWER to a wrong request" if mischief < 0.09 else "NO ANSWER"] += 1
        except (OSError, asyncio.IncompleteReadError):  # a refused upload may close the connection while it is sent
            connection.close()
            outcomes["connection closed after a wrong request" if mischief < 0.09 else "LOST"] += 1
    connection.close()


async def main() -> None:
    port, clients, seconds = int(sys.argv[1]), int(sys.argv[3]), float(sys.argv[4])
    lines = json.loads(Path(sys.argv[2]).read_text())
    deadline = time.perf_counter() + seconds
    before = time.process_time()
    if len(sys.argv) > 5:
        expected, outcomes = json.loads(Path(sys.argv[5]).read_text()), Counter[str]()
        seeds = [random.randrange(2**32) for _ in range(clients)]
        await asyncio.gather(*(unruly_client(port, lines, expected, seed, deadline, outcomes) for seed in seeds))
        print(json.dumps({"outcomes": outcomes}))
        return
    latencies: list[float] = []
    failed = sum(
        await asyncio.gather(*(client(port, lines, 7 * number, deadline, latencies) for number in range(clients)))
    )
    latencies.sort()
    report = {
        "count": len(latencies), "per_second": len(latencies) / seconds, "failed": failed,
        "cpu": time.process_time() - before,
        **{f"p{percent}": latencies[len(latencies) * percent // 100] if latencies else 0.0 for percent in (50, 95, 99)},
    }  # fmt: skip
    print(json.dumps(report))


if __name__ == "__main__":
    asyncio.run(main())
