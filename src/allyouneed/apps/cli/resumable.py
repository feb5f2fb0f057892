"""Write output chunk by chunk, so that an interrupted command can resume it.

The lines of `news.de` are first written to `news.de.partial`. After each chunk, `news.de.partial.jsonl` is replaced. It
records the model and its settings, how many input lines are translated and how many refused, a digest of these lines,
and the length of the translation in bytes.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from ...errors import ConfigError, Interrupted, OutputError
from ...machine.files import (
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
    to_json,
    write_whole,
)
from ...machine.interrupts import uninterrupted
from .chunks import Chunk

_NOTHING: dict[str, Any] = {"lines": 0, "refused": 0, "digest": "", "bytes": 0}


class RowWriter:
    """Writes rows for the lines of an input to a file. `notes` is the file that describes these rows, for resuming.

    `kept` are the notes of an earlier call, whose rows the file already has.
    """

    def __init__(
        self, file: BinaryIO, notes: Path | None = None, provenance: object = None, kept: Mapping[str, Any] = _NOTHING
    ) -> None:
        self.file, self.lines, self.refused = file, 0, int(kept["refused"])
        self._notes, self._provenance, self._kept, self._digest = notes, provenance, kept, sha256()

    def missing(self, chunks: Iterable[Chunk], done: Callable[[int], object]) -> Iterator[Chunk]:
        """Yield the chunks without lines that already have rows. `done` is called with the number of such lines.

        Refuses input whose first lines have changed since then, and input with fewer lines.
        """
        kept = self._kept["lines"]
        for chunk in chunks:
            if (known := min(len(chunk.lines), kept - self.lines)) > 0:
                self._count(chunk.lines[:known])
                done(known)
                later = {number: why for number, why in chunk.refused.items() if number >= chunk.first + known}
                chunk = Chunk(chunk.first + known, chunk.lines[known:], later, error=chunk.error)
                if self.lines == kept and self._kept["digest"] != self._digest.hexdigest():
                    raise _made_from(self.file.name, f"another input: its first {kept:,} lines were different")
            if chunk.lines or chunk.error:
                yield chunk
        if self.lines < kept:
            raise _made_from(self.file.name, f"another input, which had at least {kept:,} lines")

    def write(self, chunk: Chunk) -> None:
        """Add the rows of a chunk, and record them in the notes."""
        with uninterrupted():
            self.file.write("".join(chunk.rows).encode())
            self.file.flush()
            self._count(chunk.lines[: len(chunk.rows)])
            self.refused += len(chunk.refused)
            self.note()

    def note(self) -> None:
        """Record the rows so far in the notes, once the rows are on the disk."""
        if self._notes:
            flush_to_disk(self.file)
            digest, length = self._digest.hexdigest(), self.file.seek(0, os.SEEK_END)
            counts = {"lines": self.lines, "refused": self.refused, "digest": digest, "bytes": length}
            write_whole(self._notes, to_json({"provenance": self._provenance, **counts}) + "\n")

    def _count(self, lines: Sequence[str]) -> None:
        self.lines += len(lines)
        self._digest.update("".join(f"{line}\n" for line in lines).encode())


def partial_path(output: Path) -> Path:
    """Return the path for a result that is not complete yet. If `output` is a link, it is next to the linked file."""
    output = followed(output)
    return output.with_name(f"{output.name}.partial")


def notes_path(output: Path) -> Path:
    """Return the path of the notes about a partial result."""
    return partial_path(output).with_suffix(".partial.jsonl")


def check_output(output: Path | None, inputs: Sequence[Path | int], *, resume: bool, overwrite: bool) -> None:
    """Refuse, before any work, an output that cannot be written, or that is an input under another name.

    `inputs` are paths, or descriptors of open files. None as `output` is standard output.
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
def row_writer(output: Path | None, *, provenance: Mapping[str, object], resume: bool = False) -> Iterator[RowWriter]:
    """Open a writer of rows: to standard output, to a device or pipe, or to a file that gets its name when complete.

    With `resume`, a partial file is continued after its last chunk. Raises `OutputError` if the partial file has a
    different `provenance`, or if another process is writing it. After an error the partial file stays, so that it can
    be resumed; a SIGINT or SIGTERM then raises `Interrupted`.
    """
    if output is None:
        yield RowWriter(sys.stdout.buffer)
    elif is_stream(output):
        with refusing_errors(output), output.open("wb") as file:
            yield RowWriter(file)
    else:
        partial, notes = partial_path(output), notes_path(output)
        with refusing_errors(output), locked(partial, what=str(partial)), _interruptible(partial):
            kept = _read_notes(partial, notes, provenance) if resume and partial.exists() else _NOTHING
            try:
                with partial.open("ab") if kept["lines"] else open_new(partial) as file:
                    file.truncate(kept["bytes"])
                    writer = RowWriter(file, notes, provenance, kept)
                    if kept is _NOTHING:
                        writer.note()
                    yield writer
                rename(partial, followed(output))
                notes.unlink()
            finally:
                if partial.exists() and not partial.stat().st_size:
                    partial.unlink()
                    notes.unlink(missing_ok=True)


@contextmanager
def _interruptible(partial: Path) -> Iterator[None]:
    """Turn a SIGINT or SIGTERM inside this `with` block into an `Interrupted` that says how to continue."""
    received = [signal.SIGINT]

    def stop(number: int, _: FrameType | None) -> None:
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()  # Python delivers signals to this thread only
    before = signal.signal(signal.SIGTERM, stop) if is_main else None
    try:
        yield
    except KeyboardInterrupt:
        then = "the same command with --resume continues" if partial.exists() else "nothing was translated yet"
        raise Interrupted(f"stopped; {then}", signal=received[-1]) from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _read_notes(partial: Path, notes: Path, provenance: Mapping[str, object]) -> dict[str, Any]:
    """Read the notes about a partial file of an earlier call. Refuses notes with a different provenance."""
    try:
        kept: dict[str, Any] = {name: parse_json(read_whole(notes))[name] for name in (*_NOTHING, "provenance")}
        before = dict(kept["provenance"])
    except (OSError, ValueError, TypeError, KeyError):
        raise _made_from(partial, "unknown input: the file that describes it is missing") from None
    for key, value in parse_json(to_json(provenance)).items():
        if before.get(key) != value:
            change = f"{key} {before.get(key)!r}, not {value!r}"
            raise _made_from(partial, change if len(change) < 80 else f"another {key}")
    if partial.stat().st_size < kept["bytes"]:
        raise _made_from(partial, f"more lines: another program has shortened it to less than {kept['bytes']:,} bytes")
    return kept


def _made_from(partial: str | Path, what: str) -> OutputError:
    return OutputError(
        f"{partial} was made from {what}; give the same input and options to --resume, or start again with --overwrite"
    )
