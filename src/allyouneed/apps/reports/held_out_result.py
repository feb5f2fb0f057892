"""How a finished run does on pairs that it held out, beside baselines: `test.json` in its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ...errors import DataError
from ...files import parse_json, read_whole, to_json, write_whole
from ...run.callback import Sample

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

    `scores` has for the model and for each baseline its scores by the name of the metric, and `intervals` the ends of
    the 95 % intervals of the model's. `refused` of the texts could not be translated. `notes` say what limits these
    numbers, and `advice` what to try next, with reasons.
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
        """The result in the folder of a run; None if there is none. Refuses a damaged file."""
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
        """Write it into the folder of a run, and its samples as a text to read."""
        write_whole(folder / SAMPLES_FILE, "".join(map(_as_text, self.samples)))
        write_whole(folder / RESULT_FILE, to_json(asdict(self), indent=2) + "\n")

    def header(self) -> list[str]:
        """The head of the table that `rows` fills."""
        return [
            f"{self.pairs:,} of {self.held_out:,} test pairs",
            *(SCORE_TITLES.get(name, name) for name in self.scores[MODEL]),
        ]

    def rows(self) -> list[list[str]]:
        """The scores of each system with the ends of their intervals, as texts."""
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
