"""Prepared pairs in memory: what a run trains, validates and tests on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..config import TrainConfig
from ..machine.files import to_json, write_whole
from ..text.letter_case import CaseStatistics
from ..text.spans import CopyStatistics
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary
from .batch import Batch, batches
from .pairs import EncodedPairs, Pair, stride
from .provenance import fingerprint
from .report import DataReport

MOST_SHOWN = 24  # tokens of an example
SHOWN_TEXT = 80  # characters of an example


@dataclass(frozen=True, slots=True)
class PreparedData:
    """The data of a run. `valid` is None if no pairs are held out.

    `readable` are the validation pairs whose source fits the model. `provenance` names every source and setting that
    the pairs depend on, with a fingerprint of each.
    """

    train: EncodedPairs
    valid: EncodedPairs | None
    valid_pairs: list[Pair]
    readable: list[Pair]
    test_pairs: list[Pair]
    vocabulary: Vocabulary
    report: DataReport
    copy_statistics: CopyStatistics
    case_statistics: CaseStatistics
    provenance: dict[str, str]

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the pairs."""
        return fingerprint(self.provenance)

    def batches(self, config: TrainConfig, *, skip: int = 0, part: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """Yield training batches forever, without the first `skip`.

        `part` is (number, count): only that part of each batch.
        """
        return batches(
            self.train,
            batch_tokens=config.batch_tokens,
            seed=config.seed,
            pad_id=self.vocabulary.source.pad_id,
            target_pad_id=self.vocabulary.target.pad_id,
            skip=skip,
            part=part,
        )

    def validation_samples(self, count: int) -> list[Pair]:
        """Return at most `count` validation pairs, evenly spaced and always the same."""
        return self.readable[:: stride(len(self.readable), max(1, count))][:count]

    def describe(self) -> list[str]:
        """Describe the sizes, the dropped pairs, and the rules that were not applied, in lines."""
        held_out = {"validate": len(self.valid or ()), "test": len(self.test_pairs)}
        parts = [f"{count:,} to {use}" for use, count in held_out.items() if count]
        sizes = " and ".join(f"{size:,}" for size in self.report.vocabulary)
        lines = [", ".join([f"{len(self.train):,} pairs to train on", *parts, f"vocabulary of {sizes}"])]
        lines += self._describe_unknown()
        return [*self.report.columns, *lines, *self.report.left_out(), *self.report.unused_rules()]

    def describe_sides(self) -> list[str]:
        """Show how each side of the first training pair is split into tokens."""
        sides = {name: (getattr(self.vocabulary, name), getattr(self.train, name)) for name in ("source", "target")}
        return [f"{name}: {show_tokens(tokenizer, side[0])}" for name, (tokenizer, side) in sides.items() if len(side)]

    def _describe_unknown(self) -> Iterator[str]:
        """Warn if validation pairs contain text outside the vocabulary, which is learned from the training pairs."""
        copies = self.train.resample and self.vocabulary.target.is_of_characters
        written = "written only where the source has it" if copies else "never written"
        for name, what in (("source", "read as <unk>"), ("target", written)):
            tokenizer = getattr(self.vocabulary, name)
            texts = [getattr(pair, name) for pair in self.valid_pairs]
            some = [
                text for text, ids in zip(texts, tokenizer.encode_all(texts), strict=True) if tokenizer.unk_id in ids
            ]
            if some:
                yield (
                    f"{len(some)} of {len(texts)} validation {name}s have what no training pair has, which is {what}: "
                    f"{some[0]!r:.80}"
                )

    def identity(self) -> dict[str, object]:
        """Return the facts that identify this data: sizes, for people to read, and fingerprints."""
        return {
            "data.train's number of pairs": len(self.train),
            "data.valid's number of pairs": 0 if self.valid is None else len(self.valid),
            "the fingerprint of the pairs": self.fingerprint,
            "the fingerprint of the vocabulary": self.vocabulary.fingerprint(),
        }

    def save(self, output: Path) -> None:
        """Write the vocabulary and the data report to a folder."""
        self.vocabulary.save(output)
        report = self.report.table() | {"fingerprint": self.fingerprint}
        write_whole(output / "data-report.json", to_json(report, indent=2) + "\n")


def show_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Show a text and its first tokens, such as `jump around left → jump · around · left`."""
    content = tokenizer.content(ids)
    pieces = [piece.strip("␣") or "␣" for piece in tokenizer.pieces(content[:MOST_SHOWN])]
    return f"{tokenizer.decode(content)[:SHOWN_TEXT]} → {' · '.join(pieces)}{' …' * (len(content) > MOST_SHOWN)}"
