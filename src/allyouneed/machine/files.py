"""Write files completely or not at all, and never overwrite an output by accident.

An output may be a symbolic link, whose target is then written, or a device or named pipe, which is written to directly.
"""

import errno
import fcntl
import json
import math
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ConfigError, OutputError


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only when every byte is on the disk.

    The bytes go to `.NAME.PID.partial` in the same folder, which is flushed to the disk and then renamed. A stopped
    process or a full disk leaves an earlier file at `path` unchanged. If several processes write the file, the last one
    wins. Refuses, as an `OutputError`, a folder that cannot be written and a full disk.
    """
    with refusing_errors(path):
        if is_stream(path):
            with path.open("wb") as file:
                yield file
            return
        path = followed(path)
        _remove_abandoned(path)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            with open_new(partial) as file:
                yield file
                flush_to_disk(file)
            rename(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def named_folders(argument: str | Path) -> list[Path]:
    """Return the folders that an argument names, separated by commas.

    A comma in the name of an existing folder does not separate.

    Refuses an empty name, which would mean the current folder.
    """
    if not str(argument):
        raise ConfigError("the name of a model is empty; name its folder")
    if Path(argument).is_dir():
        return [Path(argument)]
    names = str(argument).split(",")
    if not all(map(str.strip, names)):
        raise ConfigError(f"{argument} has a comma without a model next to it; name folders like runs/a,runs/b")
    return list(map(Path, names))


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes to `path`, completely or not at all."""
    with written_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, which becomes the new folder `folder` if the `with` block succeeds.

    Until then its name is `.NAME.partial`, in the same place, and it is locked against other processes. The remains of
    a killed process are removed. Refuses, as an `OutputError`, a path that exists or cannot be written.
    """
    if os.path.lexists(folder):
        raise OutputError(f"{folder} already exists; name a new folder")
    with refusing_errors(folder), locked(folder, what=str(folder)):
        partial = folder.with_name(f".{folder.name}.partial")
        if partial.exists():
            shutil.rmtree(partial)
        try:  # from here on, because a signal may come as soon as the folder exists
            partial.mkdir()
            yield partial
            rename(partial, folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def append(path: Path, text: str) -> None:
    """Append all of `text`, or nothing, to a file that others may be reading. Refuses what `written_whole` refuses."""
    data = memoryview(text.encode())
    with refusing_errors(path):
        _require_regular(path)
        with path.open("ab", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            try:
                while data:
                    data = data[file.write(data) :]
            except OSError:
                file.truncate(size)
                raise


def read_whole(path: Path, count: int = -1) -> bytes:
    """Read a file that must be complete, such as a recipe or a part of a bundle, or only its first `count` bytes.

    Raises OSError for a named pipe, because reading could wait forever, and for a device, which may have no end.
    """
    _require_regular(path)
    with path.open("rb") as file:
        return file.read(count)


def open_new(path: Path) -> BinaryIO:
    """Open an empty file for writing. Removes anything that has its name, even a named pipe or a link."""
    path.unlink(missing_ok=True)
    return path.open("wb")


def refuse_to_replace(path: Path, *, what: str) -> None:
    """Raise an `OutputError` if `path` exists. `what` names the output in the message.

    A device or a named pipe is never refused, because it is written to instead of replaced.
    """
    if path.exists() and not is_stream(path):
        raise OutputError(
            f"{path} already exists, and {what} would replace it; name another file with --output, or add --overwrite"
        )


def check_output_file(path: Path, *, what: str, overwrite: bool, inputs: Iterable[Path | int] = ()) -> None:
    """Refuse, before any work, an output file that cannot be written or would replace another file.

    The output must not be a folder, a disk or a socket, nor be in a folder that does not exist. Unless `overwrite` is
    set, it must not exist. It must not be one of the `inputs` (paths, or descriptors of open files) under any name.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a folder; name a file with --output")
    if path.exists() and not path.is_file() and not is_stream(path):
        raise OutputError(f"{path} is not a file, and {what} cannot be written to it; name another file with --output")
    if not is_stream(path):
        folder = followed(path).parent
        if not folder.is_dir():
            raise OutputError(f"{path} cannot be written: there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            raise OutputError(f"{path} cannot be written: writing in {folder} is not permitted")
        for file in inputs:
            if is_same_file(path, file):
                name = "standard input" if isinstance(file, int) else file
                both = f"{path} is named twice" if path == file else f"{path} and {name} are one file"
                raise OutputError(f"{both}: {what} would destroy what it is made from")
    if not overwrite:
        refuse_to_replace(path, what=what)


def unused(path: str | Path) -> Path:
    """Return the path. If something is already there, add a number to it."""
    path = Path(path)
    others = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next(name for name in chain([path], others) if not os.path.lexists(name))


def is_stream(path: Path) -> bool:
    """Return True for a character device or a named pipe, which is written to instead of replaced."""
    return _mode(path, stat.S_ISCHR, stat.S_ISFIFO)


def is_named_pipe(path: Path) -> bool:
    """Return True for a pipe in the file system. Opening such a pipe waits for the other end."""
    has_path = os.path.exists(os.path.realpath(path))  # an inherited pipe, such as /dev/stdin, has no path
    return has_path and _mode(path, stat.S_ISFIFO)


def is_same_file(one: Path | int, other: Path | int) -> bool:
    """Return True if two paths (or descriptors) are one regular file, following links, or the same missing path."""
    if isinstance(one, Path) and isinstance(other, Path) and not (one.exists() or other.exists()):
        return os.path.realpath(one) == os.path.realpath(other)
    try:
        return os.path.samestat(os.stat(one), status := os.stat(other)) and stat.S_ISREG(status.st_mode)
    except OSError:
        return False


def followed(path: Path) -> Path:
    """Follow the links of a path, so that a rename replaces the file and keeps the links. `.` becomes its name."""
    return Path(os.path.realpath(path)) if path.is_symlink() or path.name in ("", "..") else path


@contextmanager
def locked(path: Path, *, what: str, wait: bool = False) -> Iterator[None]:
    """Lock `path`, a file or a folder, against other processes inside the `with` block.

    The lock is on `.NAME.lock` in the same folder, and ends with the process. If another process holds it, this waits
    with `wait`; otherwise it raises an `OutputError`, in which `what` names the path. Missing parent folders are
    created, and removed again if they stay empty.
    """
    path = followed(path)
    lock = path.with_name(f".{path.name}.lock")
    with _in_folder(path.parent):
        with refusing_errors(lock if os.path.lexists(lock) else path):
            _require_regular(lock)  # anything else of this name cannot be locked and removed
            descriptor = _lock(lock, wait=wait)
        if descriptor is None:
            raise OutputError(f"{what} is being written by another process; wait for it, or name another output")
        try:
            yield
        finally:
            # While locked, so that a process that has opened the file notices that it was removed.
            lock.unlink(missing_ok=True)
            os.close(descriptor)


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with refusing_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for path in made:
            with suppress(OSError):  # the folder is not empty
                path.rmdir()


def _remove_abandoned(path: Path) -> None:
    """Remove the partial files of `path` that killed processes left behind."""
    for partial in path.parent.glob(f".{escape(path.name)}.*.partial"):
        process = partial.name.removeprefix(f".{path.name}.").removesuffix(".partial")
        if process.isdecimal() and not _is_alive(int(process)):
            partial.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # the process belongs to another user
        return True
    return True


def flush_to_disk(file: BinaryIO) -> None:
    """Return once every written byte of a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def rename(partial: Path, path: Path) -> None:
    """Rename a file, and return once the new name is on the disk."""
    partial.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)  # the name survives a power cut only once the folder is on the disk
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_json(value: object, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Write `value` as standard JSON, in which NaN and infinity become null."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)


def to_json_lines(rows: Iterable[object]) -> str:
    """Write each row as JSON on its own line."""
    return "".join(f"{to_json(row)}\n" for row in rows)


def read_json_lines(path: Path) -> list[Any]:
    """Read a file of JSON lines, without an incomplete last line that a killed process left.

    Only a line feed ends a line, because a text may contain other line ends, such as U+2028. Raises ValueError if a
    line is not JSON.
    """
    *lines, _ = read_whole(path).split(b"\n")
    return [parse_json(line) for line in lines]


def parse_json(content: str | bytes) -> Any:
    """Parse JSON. Raises ValueError, with a message of one line, for anything else."""
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        position = f"position {error.colno}"
        where = f"line {error.lineno}, {position}" if error.lineno > 1 else position
        raise ValueError(f"is not JSON: {error.msg} at {where}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is not JSON: not UTF-8 at byte {error.start + 1}") from error
    except RecursionError:
        raise ValueError("is not JSON that can be read: it is nested too deeply") from None
    except ValueError:
        raise ValueError("is not JSON that can be read: a number has thousands of digits") from None


def _lock(lock: Path, *, wait: bool) -> int | None:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return None
        if is_same_file(descriptor, lock):
            return descriptor
        os.close(descriptor)  # the process that held the lock has removed the file


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


@contextmanager
def refusing_errors(path: Path) -> Iterator[None]:
    """Raise system errors about an output as an `OutputError`, except a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(_why_not(path, error)) from error


def _require_regular(path: Path) -> None:
    if is_named_pipe(path) or _mode(path, stat.S_ISCHR, stat.S_ISBLK):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", str(path))


def _mode(path: Path, *kinds: Any) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return any(kind(mode) for kind in kinds)


def _why_not(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        earlier = " (an earlier version is unchanged)" if path.is_file() else ""
        return f"the disk is full: {path} could not be written{earlier}; free some space"
    return f"{path} could not be written: {error.strerror or error}; name a path in a folder where you may write"
