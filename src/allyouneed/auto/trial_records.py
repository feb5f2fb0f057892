"""trials.jsonl in the folder of a run: what the trials depend on in its first line, then a line for every trial."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..files import parse_json, read_json_lines, to_json, to_json_lines, write_whole
from .candidates import Change
from .halving import TrialRecord
from .statistics import PairStatistics

TRIALS = "trials.jsonl"


class TrialFile:
    """The records of the trials that depend on the same statistics, candidates and time; empty where others are."""

    def __init__(self, folder: Path, statistics: PairStatistics, candidates: Sequence[Change], seconds: float) -> None:
        heading = {"statistics": asdict(statistics), "candidates": candidates, "seconds": seconds}
        self._path, self._heading = folder / TRIALS, parse_json(to_json(heading))
        heading_there, self.records = _read(self._path)
        if heading_there != self._heading:
            self.records = []

    def add(self, record: TrialRecord) -> None:
        """Append a record; the file is written whole or not at all."""
        self.records.append(record)
        lines = [self._heading, *map(asdict, self.records)]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, to_json_lines(lines))


def read_trials(folder: Path) -> list[TrialRecord]:
    """The trials of a run; none if it made none. Refuses a damaged file."""
    return _read(folder / TRIALS)[1]


def _read(path: Path) -> tuple[Mapping[str, Any], list[TrialRecord]]:
    if not path.exists():
        return {}, []
    try:
        heading, *lines = read_json_lines(path)
        return heading, [TrialRecord(**line) for line in lines]
    except (OSError, TypeError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}; remove it to try the settings again") from error
