"""Output that is written line by line, and that a later run can resume.

The lines of `news.de` are first written to `news.de.partial`, and `news.de.partial.jsonl` describes them: the first
line has the model and its settings; then every finished chunk adds a line with the number of input lines so far,
how many of these were refused, and a digest of them.
"""

import json
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from ..errors import ConfigError, Interrupted, OutputError
from ..files import (
    check_output_file,
    flush_to_disk,
    followed,
    is_same_file,
    is_stream,
    locked,
    open_new,
    parse_json,
    read_whole,
    refuse_to_replace,
    refusing_errors,
    rename,
)
from .flow import Chunk


class LineWriter:
    """Lines to a stream that cannot be resumed: standard output, a device or a pipe."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.lines, self.refused, self.has_text = 0, 0, False

    def has(self, chunk: Chunk) -> bool:
        """Whether the lines of a chunk are translated already."""
        return False

    def write(self, text: str) -> None:
        """Add some text."""
        self.has_text = True
        self.file.write(text.encode())

    def done(self, chunk: Chunk) -> None:
        """Every line of a chunk is written."""
        self.file.flush()
        self.lines += len(chunk.lines)
        self.refused += len(chunk.refused)


class ResumableWriter(LineWriter):
    """Lines to a partial file, whose first `kept` lines an earlier run wrote."""

    def __init__(self, partial: Path, file: BinaryIO, notes: BinaryIO, kept: "Kept") -> None:
        super().__init__(file)
        self._partial, self._notes, self._kept = partial, notes, kept
        self._digest = sha256()

    def has(self, chunk: Chunk) -> bool:
        """Whether the lines of a chunk are translated already. Refuses input that differs from the earlier input."""
        if self.lines >= self._kept.lines:
            return False
        self._read(chunk)
        if self.lines == self._kept.lines:
            if self._digest.hexdigest() != self._kept.digest:
                raise _another(self._partial, f"another input: its first {self.lines:,} lines were different")
            self.refused = self._kept.refused
        return True

    def done(self, chunk: Chunk) -> None:
        """Every line of a chunk is written; note it."""
        self.file.flush()
        self._read(chunk)
        self.refused += len(chunk.refused)
        _note(self._notes, {"lines": self.lines, "refused": self.refused, "digest": self._digest.hexdigest()})

    def finish(self, output: Path) -> None:
        """Rename the partial file to the output, if it has one line for every line of the input."""
        if self.lines < self._kept.lines:
            raise _another(self._partial, f"another input, which had at least {self._kept.lines:,} lines")
        flush_to_disk(self.file)
        with self._partial.open("rb") as file:
            written = sum(1 for _ in file)
        if written != self.lines:
            raise OutputError(
                f"{self._partial} has {written:,} lines, but the input has {self.lines:,}: another program wrote it; "
                "start again with --overwrite"
            )
        rename(self._partial, output)

    def _read(self, chunk: Chunk) -> None:
        self.lines += len(chunk.lines)
        self._digest.update("".join(f"{line}\n" for line in chunk.lines).encode())


class Kept:
    """The usable part of a partial file: its first `lines` lines, from input lines with this `digest`."""

    def __init__(self, lines: int = 0, refused: int = 0, digest: str = "") -> None:
        self.lines, self.refused, self.digest = lines, refused, digest


def partial_path(output: Path) -> Path:
    """The file for a result that is not complete yet; if `output` is a link, beside the file that it links to."""
    output = followed(output)
    return output.with_name(f"{output.name}.partial")


def notes_path(output: Path) -> Path:
    """The file that describes a partial result."""
    partial = partial_path(output)
    return partial.with_name(f"{partial.name}.jsonl")


def check_output(output: Path | None, inputs: Sequence[Path | int], *, resume: bool, overwrite: bool) -> None:
    """Refuse, before any work, an output that cannot be written, and one that is an input under another name.

    `inputs` are paths, or descriptors of open files; None for `output` is standard output.
    """
    what = "the translation"
    if output is None:
        if any(is_same_file(1, path) for path in inputs):
            raise OutputError(f"standard output and the input are the same file: {what} would overwrite its own input")
        return
    if resume and is_stream(output):
        raise ConfigError(f"--resume continues a file; {output} is a device or a pipe")
    check_output_file(output, what=what, overwrite=overwrite or resume, inputs=inputs)
    if not is_stream(output):
        for path in (partial_path(output), notes_path(output)):
            check_output_file(path, what=what, overwrite=True, inputs=inputs)
        if not (resume or overwrite):
            refuse_to_replace(partial_path(output), what="a new run (--resume would continue it)")


@contextmanager
def line_writer(
    output: Path | None, *, provenance: Mapping[str, object], size: int, resume: bool = False
) -> Iterator[LineWriter]:
    """A writer of lines to standard output, to a device or pipe, or to a file that is renamed once it is complete.

    With `resume`, a partial file is continued after its last complete chunk of `size` lines. Raises `OutputError` if
    the partial file has another provenance (`provenance`) or another process is writing it. After an error the partial
    file stays, to be resumed; a SIGINT or SIGTERM then raises `Interrupted`.
    """
    if output is None:
        yield LineWriter(sys.stdout.buffer)
        return
    with refusing_errors(output):
        if is_stream(output):
            with output.open("wb") as file:
                yield LineWriter(file)
        else:
            partial = partial_path(output)
            with locked(partial, what=str(partial)), _interruptible(partial):
                yield from _resumable(output, provenance, size, resume)


@contextmanager
def _interruptible(partial: Path) -> Iterator[None]:
    """Raise a SIGINT or SIGTERM in this block as an `Interrupted` that says how to continue."""
    received = signal.SIGINT

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal received
        received = signal.Signals(number)
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()  # Python delivers signals to this thread only
    before = signal.signal(signal.SIGTERM, stop) if is_main else None
    try:
        yield
    except KeyboardInterrupt:
        then = "the same command with --resume continues" if partial.exists() else "nothing was translated yet"
        raise Interrupted(f"stopped; {then}", signal=received) from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _resumable(output: Path, provenance: Mapping[str, object], size: int, resume: bool) -> Iterator[ResumableWriter]:
    partial, notes = partial_path(output), notes_path(output)
    kept = _kept(partial, notes, provenance, size) if resume and partial.exists() else Kept()
    again = kept.lines > 0
    try:
        with notes.open("ab") if again else open_new(notes) as log:
            if not again:
                _note(log, {"provenance": provenance})
            with partial.open("ab") if again else open_new(partial) as file:
                writer = ResumableWriter(partial, file, log, kept)
                yield writer
                writer.finish(followed(output))
        notes.unlink()
    finally:
        if partial.exists() and not partial.stat().st_size:
            partial.unlink()
            notes.unlink(missing_ok=True)


def _kept(partial: Path, notes: Path, provenance: Mapping[str, object], size: int) -> Kept:
    """The usable part of a partial file; the rest is cut off."""
    before, rows = _read_notes(notes)
    if before is None:
        raise _another(partial, "unknown input: the file that describes it is missing")
    for key, value in parse_json(json.dumps(provenance)).items():
        if before.get(key) != value:
            is_long = len(f"{before.get(key)}{value}") > 60
            raise _another(partial, f"another {key}" if is_long else f"{key} {before.get(key)!r}, not {value!r}")
    with partial.open("r+b") as file:
        ends = [0]  # byte offsets after every chunk of `size` lines
        count = offset = 0
        for line in file:
            offset += len(line)
            count += line.endswith(b"\n")
            if line.endswith(b"\n") and count % size == 0:
                ends.append(offset)
        whole = [row for row in rows if row["lines"] % size == 0 and row["lines"] <= count]
        kept = Kept(**whole[-1]) if whole else Kept()
        file.truncate(ends[kept.lines // size])
    return kept


def _note(notes: BinaryIO, row: Mapping[str, object]) -> None:
    notes.write(json.dumps(row).encode() + b"\n")
    notes.flush()


def _read_notes(notes: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    try:
        first, *rows = [parse_json(line) for line in read_whole(notes).split(b"\n")[:-1]]
        return first["provenance"], rows
    except (OSError, ValueError, TypeError, KeyError):
        return None, []


def _another(partial: Path, what: str) -> OutputError:
    return OutputError(
        f"{partial} was made from {what}; give the same input and options to --resume, or start again with --overwrite"
    )
