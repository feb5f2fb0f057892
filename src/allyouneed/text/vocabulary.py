"""The vocabulary of a model or a corpus: the tokenizers of both sides, which may be the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..machine.files import write_whole
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from ..config import ModelConfig


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokenizers of both sides, which are the same object if the sides share a vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """True if the sides share a vocabulary."""
        return self.source is self.target

    def with_vocab_size(self, model: ModelConfig) -> ModelConfig:
        """Return `model` with the sizes of this vocabulary.

        With two vocabularies, only the target embedding can be tied.
        """
        target_size = None if self.joint else len(self.target)
        differ = target_size is not None and self.source.names() != self.target.names()
        return replace(
            model,
            tied_embeddings="target" if differ and model.tied_embeddings == "all" else model.tied_embeddings,
            vocab_size=len(self.source),
            target_vocab_size=target_size,
            pad_id=self.source.pad_id,
            target_pad_id=None if self.joint else self.target.pad_id,
        )

    def fingerprint(self) -> str:
        """Return digits that differ for different vocabularies."""
        return " + ".join(side.fingerprint() for side in dict.fromkeys((self.source, self.target)))

    def first_difference(self, other: Vocabulary) -> str:
        """Return the first token, by id, that differs from `other`; "" if all are equal."""
        for side in ("source", "target"):
            names = getattr(self, side).names()
            others = getattr(other, side).names()
            for i, (name, another) in enumerate(zip(names, others, strict=False)):
                if name != another:
                    return f"id {i} of the {side} is {name!r} in one and {another!r} in the other"
            if len(names) != len(others):
                return f"the {side} has {len(names):,} ids in one and {len(others):,} in the other"
        return ""

    def save(self, folder: Path) -> None:
        """Write `files` to a folder."""
        for name, text in self.files().items():
            write_whole(folder / name, text)

    def files(self) -> dict[str, str]:
        """Return the content of `tokenizer.json`, and of `tokenizer.target.json` if the target has its own."""
        sides = {"tokenizer.json": self.source} | ({} if self.joint else {"tokenizer.target.json": self.target})
        return {name: tokenizer.to_json() for name, tokenizer in sides.items()}

    @classmethod
    def load(cls, folder: Path, *, joint: bool) -> Vocabulary:
        """Load what `save` wrote. Unless `joint`, the target has its own file."""
        names = ["tokenizer.json"] if joint else ["tokenizer.json", "tokenizer.target.json"]
        sides = [Tokenizer.load(folder / name) for name in names]
        return cls(sides[0], sides[-1])
