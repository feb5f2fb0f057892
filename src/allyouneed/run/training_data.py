"""What a run learns from: its pairs as ids, and their vocabulary."""

from dataclasses import dataclass
from math import ceil
from pathlib import Path

from ..bundle import Bundle
from ..config import DecodeConfig, Recipe
from ..corpus.normalize import Normalization
from ..corpus.pair import Pair
from ..data.prepare import prepare
from ..data.prepared import Prepared
from ..data.read import ProgressCallback
from ..data.store import EncodedPairs
from ..files import to_json, write_whole
from ..nn import Transformer
from ..text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a run learns from. `held_out` are the validation pairs as text that a model can read.

    `normalization` is the form all of its text was put into.
    """

    prepared: Prepared
    held_out: list[Pair]
    normalization: Normalization

    @property
    def vocabulary(self) -> Vocabulary:
        """How either side is written in ids."""
        return self.prepared.vocabulary

    @property
    def train(self) -> EncodedPairs:
        """The pairs to train on."""
        return self.prepared.train

    @property
    def valid(self) -> EncodedPairs | None:
        """The pairs to validate by, if there are any."""
        return self.prepared.valid

    def bundle(self, model: Transformer, decode: DecodeConfig, *, card: str = "") -> Bundle:
        """A model of this vocabulary with what it has to know of these pairs."""
        return Bundle(
            model,
            self.vocabulary.source,
            self.vocabulary.target,
            decode,
            card=card,
            copy_statistics=self.prepared.copy_statistics,
            longest_source=self.train.source.length_quantile(0.999),
            normalization=self.normalization,
        )

    def validation_samples(self, count: int) -> list[Pair]:
        """At most so many validation pairs, from all over; always the same."""
        apart = max(1, ceil(len(self.held_out) / max(1, count)))
        return self.held_out[::apart][:count]

    def describe(self) -> list[str]:
        """Its sizes, what was left out, and which rules were not used, a line each."""
        report = self.prepared.report
        held_out = {"validate": len(self.valid or ()), "test": len(self.prepared.test_pairs)}
        parts = [f"{count:,} to {what}" for what, count in held_out.items() if count]
        sizes = " and ".join(f"{size:,}" for size in report.vocabulary)
        lines = [", ".join([f"{len(self.train):,} pairs to train on", *parts, f"vocabulary of {sizes}"])]
        return lines + report.left_out() + report.unused_rules()

    def identity(self) -> dict[str, object]:
        """What tells it from any other: sizes, which a person can read, and a fingerprint."""
        return {
            "data.train's number of pairs": len(self.train),
            "data.valid's number of pairs": 0 if self.valid is None else len(self.valid),
            "the fingerprint of the pairs": self.prepared.fingerprint,
            "the fingerprint of the vocabulary": self.vocabulary.fingerprint(),
        }

    def save(self, output: Path) -> None:
        """Write the vocabulary and the report on the data."""
        self.vocabulary.save(output)
        write_whole(output / "data-report.json", to_json(self.prepared.report.table(), indent=2) + "\n")


def load_training_data(
    recipe: Recipe, output: Path, *, vocabulary: Vocabulary | None, resume: bool, progress: ProgressCallback
) -> TrainingData:
    """The pairs a recipe names, prepared in `output`; `vocabulary` is that of the model it begins with, if any."""
    prepared = prepare(
        recipe.data,
        recipe.clean,
        output / "data",
        max_length=recipe.model.max_length,
        vocabulary=vocabulary,
        resume=resume,
        progress=progress,
    )
    encode = prepared.vocabulary.source.encode_all
    lengths = map(len, encode([pair.source for pair in prepared.valid_pairs]))
    readable = zip(prepared.valid_pairs, lengths, strict=True)
    return TrainingData(
        prepared,
        [pair for pair, length in readable if length <= recipe.model.max_length],
        Normalization.from_config(recipe.clean),
    )
