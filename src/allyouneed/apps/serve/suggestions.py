"""Corrections of translations, stored as pairs that `allyouneed train … --init-from` can read, one JSON line each."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...machine.files import append, locked, parse_json, read_json_lines, to_json
from ...text.lines import LONGEST_LINE
from .refusals import Refusal


class Suggestion(NamedTuple):
    """A text, its better translation, and the languages of both."""

    source: str
    target: str
    source_language: str
    target_language: str
    time: str  # UTC, ISO 8601


class SuggestionStore:
    """A file of suggestions that several servers may add to. It never grows beyond `max_size` bytes."""

    def __init__(self, path: str | Path, *, max_size: int) -> None:
        """Open the store. Refuses, as an `OutputError`, a file that cannot be written."""
        self.path, self._max_size = Path(path), max_size
        with locked(self.path, what=str(path), wait=True):
            append(self.path, "")

    def add(self, source: str, target: str, source_language: str, target_language: str) -> None:
        """Append a suggestion. Refuses it, with status 503, if the file has no room."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        line = to_json(Suggestion(source, target, source_language, target_language, time)._asdict()) + "\n"
        with locked(self.path, what=str(self.path), wait=True):
            size = 0
            with suppress(FileNotFoundError):  # the file may have been moved away, as logs are
                size = self.path.stat().st_size
            if size + len(line.encode()) > self._max_size:
                raise Refusal(503, "The store of suggestions is full", retry_after=3600)
            append(self.path, line)


def is_suggestion_store(path: Path) -> bool:
    """Return True if a file begins with a suggestion as a server stores it."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            row = parse_json(file.readline(LONGEST_LINE))
    except ValueError:
        return False
    return isinstance(row, dict) and set(row) == set(Suggestion._fields)


def read_suggestions(path: Path) -> Iterator[Suggestion]:
    """Read the suggestions of a file, in the order in which they came. Refuses a file with other content."""
    if not path.is_file():
        raise DataError(
            f"there is no file of suggestions at {path}; "
            f"allyouneed serve BUNDLE --suggestions {shlex.quote(str(path))} makes one"
        )
    try:
        for row in read_json_lines(path):
            yield Suggestion(**row)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is not a file of suggestions: {error}") from error


def latest_suggestions(path: Path, source_language: str = "", target_language: str = "") -> list[Suggestion]:
    """Return the last suggestion for each text, for one language pair, in the order in which the texts first came.

    The languages may be left out if the file has only one pair.
    """
    everything = list(read_suggestions(path))
    chosen = [
        one
        for one in everything
        if source_language in ("", one.source_language) and target_language in ("", one.target_language)
    ]
    pairs = sorted({f"{one.source_language}-{one.target_language}" for one in chosen})
    if not chosen:
        raise DataError(f"{path} has no suggestions{' for these languages' if everything else ' yet'}")
    if len(pairs) > 1:
        raise DataError(f"{path} has suggestions for {', '.join(pairs)}; choose one pair with --source and --target")
    return list({one.source: one for one in chosen}.values())
