"""What files of strangers cost: the seconds and the memory of all processes of a command, and how it ends.

    python benchmarks/attacks.py runs/en-it

The argument is any bundle. Every command should end within seconds with exit code 0 or 2 and few lines. The last row
trains with a page whose process is stopped: the run must go on, and a signal must end both.
"""

import argparse
import hashlib
import json
import os
import secrets
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

PROGRAM = ("-m", "allyouneed")
READ = """
import sys
from pathlib import Path
from allyouneed.apps.convert.checkpoint_files import read_tensor_file
from allyouneed.errors import AllYouNeedError
try:
    read_tensor_file(Path(sys.argv[1]))
except AllYouNeedError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""
SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
MIB = 1 << 20


def write_workbook(path: Path, rows: Iterable[str], strings: Iterable[str] = (), claimed: int = 0) -> None:
    """Write an .xlsx file with these rows below a heading, and these shared strings; it may claim another size."""
    head = "".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in ("en", "it"))
    pair = "".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in ("dog", "cane"))
    parts: dict[str, Iterable[str]] = {
        "_rels/.rels": [
            f'<Relationships xmlns="{PACKAGE}">'
            f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ],
        "xl/workbook.xml": [
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
            '<sheet name="A" sheetId="1" r:id="r1"/></sheets></workbook>'
        ],
        "xl/_rels/workbook.xml.rels": [
            f'<Relationships xmlns="{PACKAGE}">'
            f'<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
            f'<Relationship Id="r2" Type="{OFFICE}/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
        ],
        SHEET: [
            f'<worksheet xmlns="{MAIN}"><sheetData><row>{head}</row><row>{pair}</row>',
            *rows,
            "</sheetData></worksheet>",
        ],
        STRINGS: [f'<sst xmlns="{MAIN}">', *strings, "</sst>"],
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, texts in parts.items():
            with archive.open(name, "w", force_zip64=True) as part:
                for text in texts:
                    part.write(text.encode())
    if claimed:
        data = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            sizes = [archive.getinfo(name).file_size for name in (SHEET, STRINGS)]
        for size in sizes:
            data = data.replace(struct.pack("<L", size), struct.pack("<L", claimed))
        path.write_bytes(data)


def filled(text: str, size: int) -> list[str]:
    """Return repetitions of a text that have about `size` bytes together, in pieces of 1 MiB."""
    return [text * (MIB // len(text))] * (size // MIB)


def workbook(
    name: str, rows: Iterable[str], strings: Iterable[str] = (), claimed: int = 0
) -> Callable[[Path, Path], list[str]]:
    """Return what writes a workbook and prepares its pairs."""

    def command(folder: Path, bundle: Path) -> list[str]:
        write_workbook(folder / f"{name}.xlsx", rows, strings, claimed)
        return [*PROGRAM, "prepare", str(folder / f"{name}.xlsx"), "--output", str(folder / "run")]

    return command


def line(text: str) -> Callable[[Path, Path], list[str]]:
    """Return what translates a file with one line."""

    def command(folder: Path, bundle: Path) -> list[str]:
        (folder / "a.txt").write_text(f"{text}\n")
        return [*PROGRAM, "translate", str(bundle), str(folder / "a.txt"), "--output", str(folder / "b.txt")]

    return command


def pickled(content: bytes) -> Callable[[Path, Path], list[str]]:
    """Return what reads the weights of a checkpoint with this pickle, as `import` does."""

    def command(folder: Path, bundle: Path) -> list[str]:
        with zipfile.ZipFile(folder / "model.bin", "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("archive/data.pkl", b"\x80\x02" + content + b".")
            archive.writestr("archive/version", "3\n")
        return ["-c", READ, str(folder / "model.bin")]

    return command


def without_unknown(pre_tokenizer: dict[str, object]) -> Callable[[Path, Path], list[str]]:
    """Return what translates with a bundle whose tokenizer lacks the unknown token."""

    def command(folder: Path, bundle: Path) -> list[str]:
        shutil.copytree(bundle, folder / "bundle", ignore=shutil.ignore_patterns("checkpoint*"))
        path = folder / "bundle/tokenizer.json"
        table = json.loads(path.read_text(encoding="utf-8"))
        table["model"]["vocab"] = {
            f"{one}x" if one == "<unk>" else one: i for one, i in table["model"]["vocab"].items()
        }
        table["model"].pop("unk_token", None)
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        path.write_text(json.dumps(table | {"pre_tokenizer": pre_tokenizer}), encoding="utf-8")
        sums = folder / "bundle/SHA256SUMS"
        sums.write_text(sums.read_text().replace(before, hashlib.sha256(path.read_bytes()).hexdigest()))
        (folder / "a.txt").write_text("a ☃\n")
        return [*PROGRAM, "translate", str(folder / "bundle"), str(folder / "a.txt")]

    return command


def varied(text: str, size: int) -> list[str]:
    """Return the same with some random bytes in each piece, so that they are packed less than 200 times."""
    return [f"<!-- {secrets.token_hex(8000)} -->{piece}" for piece in filled(text, size)]


CELL = '<row><c t="inlineStr"><is><t>a</t></is></c></row>'
FAR = '<row r="{0}"><c r="{1}{0}" t="inlineStr"><is><t>far</t></is></c></row>'
METASPACE: dict[str, object] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
MANY = 1 << 22
ATTACKS: dict[str, Callable[[Path, Path], list[str]]] = {
    "a cell ZZZZZZ99999999999": workbook("hugeref", [FAR.format(99999999999, "ZZZZZZ")]),
    "a cell XFD1048576": workbook("lastcell", [FAR.format(1048576, "XFD")]),
    "1.5 GB of rows": workbook("rows", filled(CELL, 1500 * MIB)),
    "1.5 GB in a cell": workbook("cell", [CELL[:32], *filled("a", 1500 * MIB), CELL[33:]]),
    "1 GB of shared strings": workbook("strings", [], filled("<si><t>a</t></si>", 1000 * MIB)),
    "450 MB of rows, less packed": workbook("less", varied(CELL, 450 * MIB)),
    "450 MB of shared strings": workbook("texts", [], varied("<si><t>a</t></si>", 450 * MIB)),
    "1.5 GB that claims 1 kB": workbook("claim", filled(CELL, 1500 * MIB), claimed=1000),
    "1 MB, shared 100,000 times": workbook(
        "shared",
        ['<row><c t="s"><v>0</v></c><c t="s"><v>0</v></c></row>'] * 100_000,
        ["<si><t>", secrets.token_hex(MIB // 2), "</t></si>"],
    ),
    "1 MB of dates in a line": line("1845-01-05 " * 95_000),
    "a word of 1 MB": line("a" * MIB),
    "no <unk>, Metaspace": without_unknown(METASPACE),
    "no <unk>, Whitespace": without_unknown({"type": "Whitespace"}),
    "a pickle of deep lists": pickled(b"]" * MANY + b"a" * (MANY - 1)),
    "a pickle of deep marks": pickled(b"(" * MANY + b"t" * MANY),
}  # fmt: skip


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    found = [pid]
    for one in found:
        try:
            children = Path(f"/proc/{one}/task/{one}/children").read_text()
        except OSError:
            continue
        found += map(int, children.split())
    return found


def memory(pids: Iterable[int]) -> int:
    """Return the bytes of memory that processes take, shared pages counted in each."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def attack(name: str, bundle: Path) -> None:
    """Make the input, give it to its command, and print a row."""
    with TemporaryDirectory() as folder:
        words = ATTACKS[name](Path(folder), bundle)
        with open(Path(folder, "errors"), "w+") as errors:
            start, most = time.monotonic(), 0
            process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=errors)
            while process.poll() is None:
                most = max(most, memory(family(process.pid)))
                time.sleep(0.02)
            seconds = time.monotonic() - start
            errors.seek(0)
            lines = errors.read().splitlines()
    print(
        f"{name:<28}{seconds:>8.1f}{most / MIB:>8.0f}{process.returncode:>6}{len(lines):>7}  "
        f"{(lines or [''])[-1].replace(folder, '')[:110]}"
    )


def stopped_page() -> None:
    """Train with a page, stop its process, see the run go on, end the run, and print a row."""
    with TemporaryDirectory() as folder:
        words = [
            "train", "dates", "--output", "run", "--serve", "train.steps=1000000", "train.validate_every=5",
            "data.max_train_samples=200", "data.max_valid_samples=20", "model.d_model=8", "model.d_ff=8",
            "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1", "train.threads=1",
        ]  # fmt: skip
        process = subprocess.Popen([sys.executable, *PROGRAM, *words], cwd=folder, stderr=subprocess.DEVNULL)
        metrics = Path(folder, "run/metrics.jsonl")

        def wait_for_validations(count: int) -> None:
            while not metrics.is_file() or metrics.read_text().count("\n") < count:
                if process.poll() is not None:
                    raise SystemExit(f"the run has ended with exit code {process.returncode}")
                time.sleep(0.1)

        wait_for_validations(1)
        others = family(process.pid)[1:]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        wait_for_validations(metrics.read_text().count("\n") + 100)
        process.terminate()
        start = time.monotonic()
        code = process.wait()
        seconds = time.monotonic() - start
        left = [pid for pid in others if memory([pid])]
    print(
        f"a stopped page ({len(others)} processes): 100 more validations, then SIGTERM ends the run within "
        f"{seconds:.1f} s with exit code {code} and leaves {len(left)} of them"
    )


def main() -> None:
    """Print a row for each attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    bundle = parser.parse_args().bundle
    print(f"{'input':<28}{'seconds':>8}{'MiB':>8}{'exit':>6}{'lines':>7}  last line")
    for name in ATTACKS:
        attack(name, bundle)
    stopped_page()


if __name__ == "__main__":
    main()
