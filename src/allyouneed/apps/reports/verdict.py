"""The result of a finished run. The command and the page of the run show the same lines at the end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...machine.files import read_whole
from .advice import look_ahead
from .record import SAMPLES_FILE, RunRecord

NO_TEST_SCORES = "No test scores: no pairs were held out (data.test, data.held_out)."
OF_THE_CARD = ("Untrained", "Validation ")  # the lines of a card that say how good a model is


@dataclass(frozen=True, slots=True)
class Verdict:
    """`remarks` on the model, its test scores next to baselines, what limits the scores, and what to try next."""

    remarks: Sequence[str]
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    advice: Sequence[str]

    @classmethod
    def read(cls, folder: Path, *, failure: str = "") -> Self:
        """Read the verdict on the finished run in a folder. `failure` is the reason for missing test scores.

        Refuses damaged files.
        """
        run, card = RunRecord.read(folder), read_whole(folder / "README.md").decode(errors="replace")
        remarks = [line for line in card.split("\n") if line.startswith(OF_THE_CARD)]
        prospect = [str(prospect)] if (prospect := look_ahead(run)) else []
        if run.test is None:
            return cls(remarks, (), (), [failure or NO_TEST_SCORES], prospect)
        notes = [
            *(f"{note}." for note in run.test.notes),
            f"In brackets: 95 % intervals. {len(run.test.samples)} translations: {folder / SAMPLES_FILE}",
        ]
        return cls(remarks, run.test.header(), run.test.rows(), notes, [*run.test.advice, *prospect])

    def lines(self) -> Iterator[str]:
        """Yield the verdict as plain text."""
        yield from self.remarks
        for first, *cells in (self.header, *self.rows) if self.header else ():
            yield f"{first:<25}" + "".join(f"{cell:<20}" for cell in cells).rstrip()
        yield from self.notes
        if self.advice:
            yield "What to try next:"
            yield from (f"- {line}" for line in self.advice)
