"""The prepared data of a training run: encoded pairs, their vocabulary and their provenance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..config import TrainConfig
from ..files import to_json, write_whole
from ..text.letter_case import CaseStatistics
from ..text.spans import CopyStatistics
from ..text.tokenizer import Tokenizer
from ..text.vocabulary import Vocabulary
from .batch import Batch, batches
from .pair import Pair
from .provenance import fingerprint
from .read import stride
from .report import DataReport
from .store import EncodedPairs

MOST_SHOWN, SHOWN_TEXT = 24, 80  # tokens and characters of an example


@dataclass(frozen=True, slots=True)
class PreparedData:
    """The data of a run. `valid` is None if nothing is held out.

    `readable` are the validation pairs whose source fits into the model. `provenance` names every source and setting
    that the pairs depend on, with a fingerprint of each.
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
        """Training batches without end, after the first `skip`; or of each batch one part, (number, count)."""
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
        """At most `count` validation pairs, evenly spaced; always the same ones."""
        return self.readable[:: stride(len(self.readable), max(1, count))][:count]

    def describe(self) -> list[str]:
        """Lines with the sizes, what was dropped, and which rules were not applied."""
        held_out = {"validate": len(self.valid or ()), "test": len(self.test_pairs)}
        parts = [f"{count:,} to {use}" for use, count in held_out.items() if count]
        sizes = " and ".join(f"{size:,}" for size in self.report.vocabulary)
        lines = [", ".join([f"{len(self.train):,} pairs to train on", *parts, f"vocabulary of {sizes}"])]
        lines += self._describe_unknown()
        return [*self.report.columns, *lines, *self.report.left_out(), *self.report.unused_rules()]

    def describe_sides(self) -> list[str]:
        """What the first training pair becomes on each side, token by token."""
        sides = (
            ("source", self.vocabulary.source, self.train.source),
            ("target", self.vocabulary.target, self.train.target),
        )
        return [f"{name}: {show_tokens(tokenizer, side[0])}" for name, tokenizer, side in sides if len(side)]

    def _describe_unknown(self) -> list[str]:
        """Whether validation pairs have what the vocabulary, learned from the training pairs, does not."""
        lines = []
        for name, tokenizer, texts in (
            ("source", self.vocabulary.source, [pair.source for pair in self.valid_pairs]),
            ("target", self.vocabulary.target, [pair.target for pair in self.valid_pairs]),
        ):
            unknown = tokenizer.unk_id
            some = (
                []
                if unknown is None
                else [text for text, ids in zip(texts, tokenizer.encode_all(texts), strict=True) if unknown in ids]
            )
            if some:
                what = "read as <unk>" if name == "source" else "never written"
                lines.append(
                    f"{len(some)} of {len(texts)} validation {name}s have what no training pair has, which is {what}: "
                    f"{some[0]!r:.80}"
                )
        return lines

    def identity(self) -> dict[str, object]:
        """What distinguishes it from any other data: sizes, for people to read, and fingerprints."""
        return {
            "data.train's number of pairs": len(self.train),
            "data.valid's number of pairs": 0 if self.valid is None else len(self.valid),
            "the fingerprint of the pairs": self.fingerprint,
            "the fingerprint of the vocabulary": self.vocabulary.fingerprint(),
        }

    def save(self, output: Path) -> None:
        """Write the vocabulary and the data report into a folder."""
        self.vocabulary.save(output)
        report = self.report.table() | {"fingerprint": self.fingerprint}
        write_whole(output / "data-report.json", to_json(report, indent=2) + "\n")


def show_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """A text and its first tokens, such as `jump around left → jump · around · left`."""
    content = tokenizer.content(ids)
    pieces = [piece.strip("␣") or "␣" for piece in tokenizer.pieces(content[:MOST_SHOWN])]
    return f"{tokenizer.decode(content)[:SHOWN_TEXT]} → {' · '.join(pieces)}{' …' * (len(content) > MOST_SHOWN)}"
