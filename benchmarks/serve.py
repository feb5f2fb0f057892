"""The server under load, beside offline `translate`, one text at a time, and CTranslate2; all on this machine.

    python benchmarks/serve.py [--bundle runs/mine --file test.en] [--clients 1,8,64,256] [--seconds 8] [--output …]
    python benchmarks/serve.py --soak 600

Each client sends one line at a time over a kept connection and waits for the answer. Every system has the same
weights, search and lines, two seconds to warm up, and a process of its own; the clients are one more process, which
takes processor time from the systems over HTTP but not from offline `translate`. Without a bundle it is one of random
weights (d 256, 3+3 layers, beam 4) that writes 25 tokens for every line of 20.

- offline: `Translator.translations` of all lines at once; its latency is of one line after another
- allyouneed: `allyouneed serve`
- one at a time: the same translator, a thread for each request, no batches, as LibreTranslate does it
- CTranslate2: as many requests at once as there are cores; and with a batch of whatever waits

Times are in milliseconds, memory is the resident set in MB after each load. The soak keeps 64 clients at full load,
some of which disconnect, or send what is malformed or too large, compares every answer with offline `translate`, and
reports the memory over time.
"""

import argparse
import gzip
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from allyouneed import Bundle, DecodeConfig, ModelConfig, Tokenizer, Transformer
from allyouneed.apps.convert.ctranslate2 import write_ctranslate2

HERE = Path(__file__).parent
WARM_UP = 2.0  # seconds


class System(NamedTuple):
    """What is measured: its name, and the command of its server; `{port}` and `{bundle}` are filled in."""

    name: str
    command: tuple[str, ...]


PEERS = str(HERE / "serve_peers.py")
SYSTEMS = (
    System(
        "allyouneed",
        ("-m", "allyouneed", "serve", "{bundle}=en-de", "--port", "{port}", "--device", "cpu",
         "--max-queue", "2000"),
    ),
    System("one at a time", (PEERS, "one-at-a-time", "{bundle}", "{port}")),
    System("CTranslate2", (PEERS, "ctranslate2", "{bundle}", "{port}")),
    System("CTranslate2, batches", (PEERS, "ctranslate2-batches", "{bundle}", "{port}")),
)  # fmt: skip


def random_bundle(folder: Path) -> list[str]:
    """Save a bundle of random weights. Returns lines for it."""
    torch.manual_seed(1)
    letters = "".join(map(chr, range(0x20000, 0x20000 + 8_000 - 3)))
    tokenizer = Tokenizer.characters(letters)
    config = ModelConfig(
        vocab_size=len(tokenizer), d_model=256, d_ff=1024, heads=4, encoder_layers=3, decoder_layers=3,
        max_length=512, pad_id=tokenizer.pad_id,
    )  # fmt: skip
    decode = DecodeConfig(beam=4, max_length=25, retry_repetition=False)
    Bundle(Transformer(config).eval(), tokenizer, tokenizer, decode).save(folder)
    rng = random.Random(1)
    return ["".join(rng.choices(letters, k=18)) for _ in range(500)]


@contextmanager
def served(system: System, bundle: Path) -> Iterator[tuple[int, int]]:
    """Run a server of `system`; yield its port and the id of its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [word.format(port=port, bundle=bundle) for word in system.command]
    log = bundle.with_name(f"{system.name}.log")  # a pipe that nobody reads would stop the server when it is full
    with log.open("w") as stderr:
        process = subprocess.Popen([sys.executable, *command], stderr=stderr)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
                if process.poll() is not None:
                    raise SystemExit(f"{system.name} did not start: {log.read_text()}") from None
        yield port, process.pid
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def load(port: int, lines: Path, *, clients: int, seconds: float, soak: Path | None = None) -> dict[str, Any]:
    """Run the clients in a process of their own, and return their results."""
    words = [str(port), str(lines), str(clients), str(seconds), *([str(soak)] if soak else [])]
    result = subprocess.run(
        [sys.executable, str(HERE / "serve_load.py"), *words], capture_output=True, check=True, text=True
    )
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def resident_mb(pid: int) -> float:
    """Return the resident set of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return float(status.split("VmRSS:")[1].split()[0]) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def offline(bundle: Path, lines: Path, seconds: float) -> dict[str, Any]:
    """Measure throughput and latencies of offline `translate`, in a process of its own."""
    result = subprocess.run(
        [sys.executable, PEERS, "offline", str(bundle), str(lines), str(seconds)],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def row(name: str, clients: object, report: dict[str, Any], memory: float, baseline: float) -> str:
    cells = [
        name, str(clients), f"{report['per_second']:.1f}", f"{report['per_second'] / baseline:.2f}",
        *(f"{1000 * report[p]:.1f}" for p in ("p50", "p95", "p99")), f"{memory:.0f}", str(report.get("failed", 0)),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def compare(bundle: Path, lines: Path, clients: Sequence[int], seconds: float, names: Sequence[str]) -> Iterator[str]:
    """Yield a Markdown table, row by row."""
    reference = offline(bundle, lines, seconds)
    yield "| system | clients | lines/s | ÷ offline | p50 | p95 | p99 | MB | failed |"
    yield "|---|---|---|---|---|---|---|---|---|"
    yield row("offline", "–", reference, reference["memory"], reference["per_second"])
    for system in SYSTEMS:
        if names and system.name not in names:
            continue
        with served(system, bundle) as (port, pid):
            load(port, lines, clients=4, seconds=WARM_UP)
            for count in clients:
                before = cpu_seconds(pid)
                report = load(port, lines, clients=count, seconds=seconds)
                used = cpu_seconds(pid) - before
                yield row(system.name, count, report, resident_mb(pid), reference["per_second"])
                print(
                    f"{system.name}, {count} clients: {1000 * used / max(1, report['count']):.2f} ms of processor time "
                    f"a line, the clients {1000 * report['cpu'] / max(1, report['count']):.2f} ms; offline "
                    f"{reference['cpu_ms']:.2f} ms",
                    file=sys.stderr,
                )


def soak(bundle: Path, lines: Path, seconds: float, folder: Path) -> str:
    """Apply full load with clients that misbehave; say how the answers and the memory fared."""
    expected = folder / "expected.json"
    subprocess.run([sys.executable, PEERS, "expected", str(bundle), str(lines), str(expected)], check=True)
    with served(SYSTEMS[0], bundle) as (port, pid):
        load(port, lines, clients=64, seconds=5 * WARM_UP)  # warm up
        parts = max(2, int(seconds // 30))
        memory, totals = [resident_mb(pid)], dict[str, int]()
        for _ in range(parts):
            report = load(port, lines, clients=64, seconds=seconds / parts, soak=expected)
            memory.append(resident_mb(pid))
            for name, count in report["outcomes"].items():
                totals[name] = totals.get(name, 0) + count
            print(f"{memory[-1]:.0f} MB, {totals}", file=sys.stderr)
    slope = (memory[-1] - memory[len(memory) // 2]) / (seconds / 2) * 60
    return (
        f"{json.dumps(totals)}\nmemory in MB: {', '.join(f'{size:.0f}' for size in memory)}; "
        f"{slope:+.1f} MB a minute in the second half"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--file", type=Path, help="lines to translate, plain or .gz")
    parser.add_argument("--clients", default="1,8,64,256")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each load")
    parser.add_argument(
        "--system", action="append", default=[], help="the name of one to measure; repeatable; default: all"
    )
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of full load instead of the table")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if (options.bundle is None) != (options.file is None):
        parser.error("--bundle and --file go together")
    with tempfile.TemporaryDirectory() as name:
        folder, bundle = Path(name), options.bundle
        if bundle is None:
            bundle = folder / "bundle"
            texts = random_bundle(bundle)
        else:
            data = options.file.read_bytes()
            text = (gzip.decompress(data) if options.file.suffix == ".gz" else data).decode()
            texts = [line for line in text.splitlines() if line.strip()]
        lines = folder / "lines.json"
        lines.write_text(json.dumps(texts))
        os.environ["ALLYOUNEED_BENCHMARK_CT2"] = str(folder / "ct2")
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as every command of allyouneed has it
        (folder / "ct2").mkdir()
        write_ctranslate2(Bundle.load(bundle), folder / "ct2", "int8")
        if options.soak:
            results: Iterator[str] = iter([soak(bundle, lines, options.soak, folder)])
        else:
            counts = [int(count) for count in options.clients.split(",")]
            results = compare(bundle, lines, counts, options.seconds, options.system)
        table = []
        for line in results:
            print(line, flush=True)
            table.append(line)
    if options.output:
        options.output.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
