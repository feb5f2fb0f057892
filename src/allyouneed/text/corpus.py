"""Where pairs of sentences come from: two aligned text files, or a task made on the spot."""

import gzip
import random
import zlib
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from .dates import SPLITS
from .tasks import TASKS, task_pairs


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


def read_pairs(where: str | tuple[str, ...], *, folder: str = "", limit: int = 0, seed: int = 1) -> list[Pair]:
    """The pairs that `where` names.

    `where` is a task and a split of it, such as `"dates:train"`, or the paths of two text files,
    plain or .gz, whose lines n pair; `folder` goes before relative paths. With a `limit` only that
    many pairs are drawn, by `seed`, in the order they stand in. Refuses files of different length.
    """
    if isinstance(where, str):
        task, _, split = where.partition(":")
        if task not in TASKS or split not in SPLITS:
            raise DataError(
                f"no pairs are known under {where!r}; name two aligned files, or a task "
                f"({', '.join(TASKS)}) and a split of it, such as {', '.join(f'dates:{split}' for split in SPLITS)}"
            )
        return [Pair(*pair) for pair in task_pairs(task, split, count=limit, seed=seed)]
    source, target = (Path(folder, name) for name in where)
    pairs = pair_lines(source, target)
    if 0 < limit < len(pairs):
        chosen = sorted(random.Random(seed).sample(range(len(pairs)), limit))
        pairs = [pairs[i] for i in chosen]
    return pairs


def pair_lines(source: Path, target: Path) -> list[Pair]:
    """Line n of one file with line n of the other. Refuses files of different length."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources)} lines but {target} has {len(targets)}; the two must pair line by line"
        )
    return [Pair(*pair) for pair in zip(sources, targets, strict=True)]


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file, plain or .gz, without their ends and outer blanks.

    Only a line feed (or CR LF) ends a line: other separators Unicode knows stay inside it, so that
    the count is the one `wc -l` gives. Refuses, naming the line, what is not UTF-8.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is no whole gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{path} could not be read: {error.strerror or error}") from error
    return decode_lines(content, name=str(path))


def decode_lines(content: bytes, *, name: str) -> list[str]:
    """The lines of UTF-8 bytes; `name` is what an error calls them."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [_decode(line, name, number) for number, line in enumerate(lines, start=1)]


def _decode(line: bytes, name: str, number: int) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}, line {number} is not UTF-8: byte {error.object[error.start]:#04x} at place "
            f"{error.start + 1} of the line; convert the file to UTF-8 first"
        ) from error
