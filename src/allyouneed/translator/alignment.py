"""Alignments: which source words or tokens the words or tokens of a translation come from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..decode import Hypothesis
from ..text.backends import UNK
from ..text.tokenizer import Tokenizer
from .generation import TranslationGenerator

if TYPE_CHECKING:
    from ..nn import Transformer

Unit = Literal["words", "tokens"]
Link = tuple[int, int]


class Alignment(NamedTuple):
    """The units of a source and of its translation, and a link (i, j) for each aligned pair of units.

    A unit is a word between blanks, or a token of the vocabulary. The indices i and j count from 0.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[Link, ...]

    def __str__(self) -> str:
        """Format the links as Pharaoh does: `0-0 1-2`."""
        return " ".join(f"{i}-{j}" for i, j in self.links)


class Aligner:
    """Aligns sources with their translations, by the cross-attention of `models`.

    Sources must have been encoded with `source_tokenizer`.
    """

    def __init__(
        self,
        models: Callable[[], Sequence[Transformer]],
        generator: TranslationGenerator,
        source_tokenizer: Tokenizer,
    ) -> None:
        self._models = models
        self._generator = generator
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = generator.target_tokenizer
        self._first = source_tokenizer.start_length  # the position of the first token that is not special

    def align(self, sources: Sequence[list[int]], hypotheses: Sequence[Hypothesis], unit: Unit) -> list[Alignment]:
        """Return an alignment for each source and its hypothesis."""
        return [
            self._align_pair(ids, hypothesis.ids, positions, unit)
            for ids, hypothesis, positions in zip(
                sources, hypotheses, self._attended_positions(sources, hypotheses), strict=True
            )
        ]

    def replace_unknown(self, text: str, source: str, ids: list[int], best: Hypothesis) -> str:
        """Replace each `<unk>` of a translation with the source word that it attends to most (Luong et al., 2015).

        If the vocabulary consists of characters, replace the n-th `<unk>` with the n-th unknown character of the source
        instead; if there are more `<unk>` than such characters, repeat the last one.
        """
        unknown = self._target_tokenizer.unk_id
        if unknown is None or unknown not in best.ids:
            return text
        if self._target_tokenizer.is_of_characters:
            for character in (read := self._source_tokenizer.unknown_characters(source)):
                text = text.replace(UNK, character, 1)
            return self._target_tokenizer.composed(text.replace(UNK, read[-1]) if read else text)
        words = list(re.finditer(r"\S+", source))
        up_to_words = self._source_tokenizer.encode_all([source[: word.end()] for word in words])
        ends = [self._first + len(self._source_tokenizer.content(beginning)) for beginning in up_to_words]
        (positions,) = self._attended_positions([ids], [best])
        attended_words = iter(
            words[min(bisect_right(ends, position), len(words) - 1)][0]
            for position, i in zip(positions, best.ids, strict=False)
            if i == unknown
        )
        return re.sub(rf"\s*{re.escape(UNK)}", lambda _: f" {next(attended_words, UNK)}", text).strip()

    def _align_pair(self, source: list[int], target: list[int], attended: list[int], unit: Unit) -> Alignment:
        if not self._source_tokenizer.content(source):  # the text has only invisible characters
            attended = []
        if unit == "tokens":  # without the start and end tokens
            links = tuple((position - self._first, j) for j, position in enumerate(attended[: len(target)]))
            return Alignment(
                tuple(self._source_tokenizer.pieces(self._source_tokenizer.content(source))),
                tuple(self._target_tokenizer.pieces(target)),
                links,
            )
        read = _word_indices(source, self._source_tokenizer)
        written = _word_indices(target, self._target_tokenizer)
        pairs = {(read[position], word) for position, word in zip(attended, written, strict=False)}
        words_read = tuple(_words(self._source_tokenizer.decode(source)))
        words_written = tuple(_words(self._target_tokenizer.decode(target)))
        return Alignment(words_read, words_written, tuple(sorted(pairs)))

    def _attended_positions(self, sources: Sequence[list[int]], hypotheses: Sequence[Hypothesis]) -> list[list[int]]:
        """Find the source position that each token of a hypothesis attends to most."""
        import torch

        from ..data.batch import pad
        from .likelihood import align_targets

        models = self._models()
        config = models[0].config
        device = next(models[0].parameters()).device
        targets = [self._generator.target(hypothesis) for hypothesis in hypotheses]
        source = pad(sources, config.pad_id).to(device)
        target = pad(targets, config.effective_target_pad_id).to(device)
        special = (self._source_tokenizer.pad_id, self._source_tokenizer.sos_id, self._source_tokenizer.eos_id)
        is_word = torch.stack([source != token for token in special]).all(0)
        with torch.inference_mode():
            positions: list[list[int]] = align_targets(models, source, target, is_word).tolist()
        return positions


def _words(text: str) -> list[str]:
    return text.replace(UNK, f" {UNK}").split()  # decoding omits the blank before `<unk>`


def _word_indices(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    """Find the index of each token's word. Words are separated by blanks."""
    beginnings = tokenizer.decode_all([ids[:end] for end in range(1, len(ids) + 1)])
    return [max(0, len(_words(beginning)) - 1) for beginning in beginnings]
