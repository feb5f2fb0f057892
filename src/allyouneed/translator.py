"""Text → text: the product."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import torch

from .bundle import Bundle
from .config import DecodeConfig
from .data.batch import pad
from .decode import Hypothesis, beam_search, greedy_search, step_of
from .device import pick_device
from .errors import InputError


class Translator:
    """A bundle at work: `Translator.load("runs/dates")("1845-01-05")` gives `January 5, 1845`."""

    def __init__(self, bundle: Bundle, *, decode: DecodeConfig | None = None) -> None:
        self.model, self.tokenizer = bundle.model, bundle.tokenizer
        self.decode = decode or bundle.decode
        never = (self.tokenizer.pad_id, self.tokenizer.sos_id, self.tokenizer.unk_id)
        self._step = step_of(self.model, never=tuple(i for i in never if i is not None))

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str = "auto", beam: int | None = None, batch: int | None = None
    ) -> Self:
        """A translator from a bundle's folder. `beam` and `batch`, if given, replace the bundle's own."""
        bundle = Bundle.load(Path(folder), device=pick_device(device))
        chosen = {name: value for name, value in (("beam", beam), ("batch", batch)) if value is not None}
        return cls(bundle, decode=replace(bundle.decode, **chosen))

    def __call__(self, text: str) -> str:
        """The translation of one text; an empty one stays empty."""
        return self.translate([text])[0]

    def translate(self, texts: Sequence[str], *, done: Callable[[int], None] = lambda _: None) -> list[str]:
        """The translations of many texts, in their order; an empty one stays empty.

        `done` is told how many texts each batch finished. Refuses, before the first is translated, a
        character outside the vocabulary and a text longer than the model's `max_length`; the error's
        `line` says which text, counted from 1.
        """
        translations = [""] * len(texts)
        for places, found in self.search(texts):
            for place, text in zip(places, self.tokenizer.decode_all([best.ids for best in found]), strict=True):
                translations[place] = text
            done(len(places))
        return translations

    def search(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[Hypothesis]]]:
        """Batch by batch, the places of some texts and what the search found for each; empty texts are left out."""
        sentences = self._encode(texts)
        waiting = sorted((place for place, text in enumerate(texts) if text), key=lambda place: len(sentences[place]))
        for start in range(0, len(waiting), self.decode.batch):
            places = waiting[start : start + self.decode.batch]
            yield places, self._search([sentences[place] for place in places])

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        sentences = self.tokenizer.encode_all(texts)
        limit = self.model.config.max_length
        for line, (text, ids) in enumerate(zip(texts, sentences, strict=True), start=1):
            if len(ids) > limit:
                raise InputError(
                    f"{text[:30]!r}… has {len(ids)} tokens; this model reads at most {limit}, so split it",
                    line=line,
                )
        return sentences

    @torch.inference_mode()
    def _search(self, sentences: list[list[int]]) -> list[Hypothesis]:
        device = next(self.model.parameters()).device
        source = pad(sentences, self.tokenizer.pad_id).to(device)
        longest = torch.tensor([len(ids) - 2 + self.decode.extra_length for ids in sentences], device=device)
        state = self.model.start(source)
        search = (
            greedy_search
            if self.decode.beam == 1
            else partial(beam_search, beam=self.decode.beam, alpha=self.decode.alpha)
        )
        return search(
            self._step,
            state,
            sos_id=self.tokenizer.sos_id,
            eos_id=self.tokenizer.eos_id,
            max_lengths=longest.clamp(1, self.model.config.max_length),
        )
