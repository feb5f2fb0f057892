"""The files of a run, as reports read them; also `test.json`, the scores on its held-out pairs."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ...config.settings import from_table
from ...data.report import DataReport
from ...errors import ConfigError, DataError
from ...machine.files import parse_json, read_whole, to_json, write_whole
from ...run.callback import Sample
from ...run.log import read_jsonl_lines
from .curves import Points

RESULT_FILE, SAMPLES_FILE = "test.json", "test-samples.txt"

MODEL, COPY, NEAREST = "model", "copy", "nearest"
SYSTEMS = {
    MODEL: "this model",
    COPY: "copy of the source",
    NEAREST: "nearest training pair",
}
SCORE_TITLES = {"bleu": "BLEU", "chrf": "chrF2", "exact": "exact match"}


@dataclass(frozen=True, slots=True)
class HeldOutResult:
    """Scores of a model after update `step` on `pairs` of the `held_out` test pairs of its run.

    `scores` has the scores of the model and of each baseline by the name of the metric. `intervals` has the ends of the
    model's 95 % intervals. `refused` counts texts that could not be translated. `notes` say what limits these numbers,
    and `advice` says what to try next, with reasons.
    """

    step: int
    pairs: int
    held_out: int
    refused: int
    scores: Mapping[str, Mapping[str, float]]
    intervals: Mapping[str, tuple[float, float]]
    signatures: Mapping[str, str]
    samples: Sequence[Sample] = ()
    notes: Sequence[str] = ()
    advice: Sequence[str] = ()

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the result in the folder of a run; None if there is none. Refuses a damaged file."""
        path = folder / RESULT_FILE
        if not path.exists():
            return None
        try:
            table = parse_json(read_whole(path))
            samples = [Sample(**sample) for sample in table.pop("samples")]
            intervals = {name: (low, high) for name, (low, high) in table.pop("intervals").items()}
            return cls(**table, samples=samples, intervals=intervals)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise DataError(f"{path} is damaged ({error!r}); remove it to continue without it") from error

    def write(self, folder: Path) -> None:
        """Write the result to the folder of a run, and its samples as a readable text."""
        write_whole(folder / SAMPLES_FILE, "".join(map(_as_text, self.samples)))
        write_whole(folder / RESULT_FILE, to_json(asdict(self), indent=2) + "\n")

    def header(self) -> list[str]:
        """Return the heading of the table whose rows are `rows`."""
        return [
            f"{self.pairs:,} of {self.held_out:,} test pairs",
            *(SCORE_TITLES.get(name, name) for name in self.scores[MODEL]),
        ]

    def rows(self) -> list[list[str]]:
        """Return the scores of each system with the ends of their intervals, as texts."""
        return [
            [SYSTEMS[system], *(self._cell(system, name, value) for name, value in scores.items())]
            for system, scores in self.scores.items()
        ]

    def _cell(self, system: str, name: str, value: float) -> str:
        low, high = self.intervals[name]
        return f"{value:.1f} ({low:.1f}–{high:.1f})" if system == MODEL else f"{value:.1f}"


def _as_text(sample: Sample) -> str:
    return (
        f"source     {sample.source}\noutput     {sample.output}\nreference  {sample.reference}\n"
        f"chrF2      {sample.score:.1f}\n\n"
    )


Lines = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The files that a run has written to its folder so far. Missing files are empty here."""

    name: str
    settings: dict[str, dict[str, Any]]
    validations: Lines
    updates: Lines
    samples: Lines
    outputs: Lines  # of the model in the folder: source, output, reference, and a score that may be missing
    environment: Lines
    data: DataReport | None
    log: str
    test: HeldOutResult | None = None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the run in a folder. Refuses a folder without a run, and damaged files."""
        if not (folder / "recipe.toml").is_file():
            raise ConfigError(f"{folder} is not a training run: it has no recipe.toml; name the folder of a run")
        try:
            return cls._read(folder)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise damaged(folder, error) from error

    @classmethod
    def _read(cls, folder: Path) -> Self:
        validations = read_jsonl_lines(folder / "metrics.jsonl")
        for validation in validations:
            validation["scores"] = {name: value for name, value in validation["scores"].items() if value is not None}
        test = HeldOutResult.read(folder)
        report, log = folder / "data-report.json", folder / "log.txt"
        return cls(
            name=folder.resolve().name,
            settings=tomllib.loads(read_whole(folder / "recipe.toml").decode("utf-8")),
            validations=validations,
            updates=read_jsonl_lines(folder / "updates.jsonl"),
            samples=read_jsonl_lines(folder / "samples.jsonl"),
            outputs=read_jsonl_lines(folder / "validation.jsonl"),
            environment=read_jsonl_lines(folder / "environment.jsonl"),
            data=from_table(DataReport, parse_json(read_whole(report))) if report.exists() else None,
            log=log.read_text(encoding="utf-8", errors="replace") if log.exists() else "",
            # A test from before a run was resumed says nothing about the present model.
            test=test if test and validations and test.step == validations[-1]["step"] else None,
        )

    def checkpoints(self) -> Lines:
        """Return the validations of single checkpoints, not those of averages."""
        return [validation for validation in self.validations if validation["averaged"] == 1]

    def last_step(self) -> int:
        """Return the number of the update after which the run was last validated."""
        return int(self.validations[-1]["step"]) if self.validations else 0

    def setting(self, section: str, key: str, default: Any) -> Any:
        """Return a setting of the recipe, or `default` if an older recipe lacks it."""
        return self.settings.get(section, {}).get(key, default)

    def has_comparable_losses(self) -> bool:
        """Return True if training and validation loss measure the same, so that they can be compared."""
        return not self.setting("train", "label_smoothing", 0.0) and not self.setting("train", "r_drop", 0.0)

    def score_names(self) -> list[str]:
        """Return the names of the scores in the validations."""
        return list(dict.fromkeys(name for validation in self.validations for name in validation["scores"]))


def points_over_updates(lines: Lines, *path: str) -> Points:
    """Return the points of a value over the updates, from all lines that have this value."""
    points = []
    for line in lines:
        value: Any = line
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            points.append((float(line["step"]), float(value)))
    return points


def training_points(run: RunRecord, key: str) -> Points:
    """Return points of loss, gradient norm or learning rate over the updates; for an older run, at its validations."""
    return points_over_updates(run.updates or run.checkpoints(), key)


def describe_means(*runs: RunRecord) -> list[str]:
    """Say that the curves leave out the average of checkpoints, if there is one."""
    has_mean = any(len(run.checkpoints()) < len(run.validations) for run in runs)
    return ["The mean of the last checkpoints is not in the curves."] * has_mean


def damaged(folder: Path, error: Exception) -> DataError:
    """Make the error for a folder whose files cannot be understood."""
    return DataError(
        "metrics.jsonl, updates.jsonl, samples.jsonl, validation.jsonl, environment.jsonl, test.json or "
        f"data-report.json in {folder} is damaged ({error!r}); remove it to continue"
    )
